package plug

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"
)

// Bounds of what a plugin that announces releases is told and says in one call: bytes of what it is told of series, and
// of what it records, and how many releases and sources.
const (
	MaxTracked    = 3 << 20
	MaxRecorded   = 2 << 20
	MaxCandidates = 1000
	MaxSources    = 100
)

// SourceKinds are what sources of releases can be.
var SourceKinds = []string{"rss-uploader", "rss-series", "api-feed", "metadata-feed"}

// Releases is what a plugin that announces releases may know.
type Releases struct {
	Source   string            `json:"source,omitempty"` // that is polled; empty where none is
	ETag     *string           `json:"etag,omitempty"`   // of the source
	Tracked  []Tracked         `json:"tracked,omitempty"`
	Recorded map[string]string `json:"recorded,omitempty"` // ids of what the source has announced, by what it calls that
	Torrents map[string]string `json:"torrents,omitempty"` // ids of what any source has announced, by TorrentOf
	Sources  []string          `json:"sources,omitempty"`  // that the plugin has named
}

// TorrentOf is the torrent of a release as it is known in its series, "" where it says none.
func TorrentOf(candidate json.RawMessage) string {
	var c struct {
		Match    map[string]json.RawMessage `json:"seriesMatch"`
		InfoHash string
	}
	if json.Unmarshal(candidate, &c) != nil {
		return ""
	}
	for name, v := range c.Match {
		var series uuid.UUID
		if strings.HasSuffix(strings.ToLower(name), "seriesid") && json.Unmarshal(v, &series) == nil {
			return Torrent(series, c.InfoHash)
		}
	}
	return ""
}

// Torrent is TorrentOf a series and an info hash.
func Torrent(series uuid.UUID, info string) string {
	if info = strings.ToLower(strings.TrimSpace(info)); info == "" {
		return ""
	}
	return series.String() + "/" + info
}

// Tracked is a series of which releases are asked for.
type Tracked struct {
	SeriesID           string            `json:"seriesId"`
	Aliases            []string          `json:"aliases,omitempty"`
	ExternalIDs        map[string]string `json:"externalIds,omitempty"`
	LatestKnownChapter *float64          `json:"latestKnownChapter,omitempty"`
	LatestKnownVolume  *float64          `json:"latestKnownVolume,omitempty"`
}

// ReleaseChanges are what a plugin has said of releases while it answered.
type ReleaseChanges struct {
	Recorded []Recorded        `json:"recorded,omitempty"`
	ETag     *string           `json:"etag,omitempty"`
	Sources  []json.RawMessage `json:"sources"` // that it names in the place of those there are; nil: it has named none
}

// Recorded is a release that it has announced, with the id that it was given.
type Recorded struct {
	ID        string          `json:"id"`
	Candidate json.RawMessage `json:"candidate"`
}
