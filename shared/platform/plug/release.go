package plug

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/google/uuid"
)

// Limits for a plugin that announces releases, per call: bytes about series that it gets, bytes that it records, and
// numbers of releases and sources.
const (
	MaxTracked    = 3 << 20
	MaxRecorded   = 2 << 20
	MaxCandidates = 1000
	MaxSources    = 100
)

// SourceKinds are the kinds of release sources.
var SourceKinds = []string{"rss-uploader", "rss-series", "api-feed", "metadata-feed"}

// Releases is what a plugin that announces releases may know.
type Releases struct {
	Source  string    `json:"source,omitempty"` // the polled source; empty if none
	ETag    *string   `json:"etag,omitempty"`   // of the source
	Tracked []Tracked `json:"tracked,omitempty"`
	// Ids of releases that the source announced, by Key of the source's own id.
	Recorded map[string]string `json:"recorded,omitempty"`
	Torrents map[string]string `json:"torrents,omitempty"` // ids of releases that any source announced, by TorrentOf
	Sources  []string          `json:"sources,omitempty"`  // sources that the plugin has named
}

// Key returns the key of a source's id of a release. It is short, because a source may have many releases.
func Key(external string) string {
	sum := sha256.Sum256([]byte(external))
	return base64.StdEncoding.EncodeToString(sum[:])[:16]
}

// TorrentOf returns the series of a release, and the key of its torrent within that; "" without a torrent.
func TorrentOf(candidate json.RawMessage) (series uuid.UUID, torrent string) {
	var c struct {
		Match    map[string]json.RawMessage `json:"seriesMatch"`
		InfoHash string
	}
	if json.Unmarshal(candidate, &c) != nil {
		return series, ""
	}
	for name, v := range c.Match {
		if strings.HasSuffix(strings.ToLower(name), "seriesid") && json.Unmarshal(v, &series) == nil {
			return series, Torrent(series, c.InfoHash)
		}
	}
	return uuid.Nil, ""
}

// Torrent returns the same key for a series and an info hash.
func Torrent(series uuid.UUID, info string) string {
	if info = strings.ToLower(strings.TrimSpace(info)); info == "" {
		return ""
	}
	return series.String() + "/" + info
}

// Tracked is a series whose releases are wanted.
type Tracked struct {
	SeriesID           string            `json:"seriesId"`
	Aliases            []string          `json:"aliases,omitempty"`
	ExternalIDs        map[string]string `json:"externalIds,omitempty"`
	LatestKnownChapter *float64          `json:"latestKnownChapter,omitempty"`
	LatestKnownVolume  *float64          `json:"latestKnownVolume,omitempty"`
}

// ReleaseChanges are what a plugin reported about releases while it answered.
type ReleaseChanges struct {
	Recorded []Recorded        `json:"recorded,omitempty"`
	ETag     *string           `json:"etag,omitempty"`
	Reached  string            `json:"reached,omitempty"` // the last series, in the order of Tracked, with a release in record
	Sources  []json.RawMessage `json:"sources"`           // replace the existing ones; nil: it has named none
}

// Recorded is an announced release with its new id.
type Recorded struct {
	ID        string          `json:"id"`
	Candidate json.RawMessage `json:"candidate"`
}
