package release

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/format/language"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Limits of a candidate.
const (
	maxSpans = 100
	maxHints = 8 << 10 // bytes
	maxDepth = 20      // of JSON
)

// candidate is a release announced by a plugin, in its stored form.
type candidate struct {
	ID         uuid.UUID       `json:"id"`
	SeriesID   uuid.UUID       `json:"series_id"`
	External   string          `json:"external_release_id"`
	Info       *string         `json:"info"`
	Volumes    []Span          `json:"volumes"`
	Chapters   []Span          `json:"chapters"`
	Language   *string         `json:"language"`
	Hints      json.RawMessage `json:"format_hints"`
	By         *string         `json:"group_or_uploader"`
	Payload    string          `json:"payload_url"`
	Media      *string         `json:"media_url"`
	MediaKind  *string         `json:"media_url_kind"`
	Confidence float64         `json:"confidence"`
	Metadata   json.RawMessage `json:"metadata"`
	State      string          `json:"state"`
	Observed   time.Time       `json:"observed_at"`
	Released   *time.Time      `json:"released_at"`
}

// read decodes a candidate. Unusable values are dropped; nil means that the whole candidate is unusable.
func read(raw json.RawMessage, now time.Time) *candidate {
	var in struct {
		Match             map[string]json.RawMessage `json:"seriesMatch"`
		ExternalReleaseID string                     `json:"externalReleaseId"`
		Volumes, Chapters []Span
		Language          *string
		FormatHints       json.RawMessage
		GroupOrUploader   *string
		PayloadURL        string
		MediaURL          *string
		MediaURLKind      *string
		InfoHash          *string
		Metadata          json.RawMessage
		ObservedAt        *time.Time
		ReleasedAt        *time.Time
	}
	if json.Unmarshal(raw, &in) != nil {
		return nil
	}
	out := &candidate{External: clean(in.ExternalReleaseID), Info: line(in.InfoHash, 100), Volumes: spans(in.Volumes), Chapters: spans(in.Chapters),
		Hints: hints(in.FormatHints), By: line(in.GroupOrUploader, 200), Metadata: hints(in.Metadata), Observed: now, Released: utc(in.ReleasedAt)}
	for name, v := range in.Match {
		switch name = strings.ToLower(name); {
		case strings.HasSuffix(name, "seriesid"):
			_ = json.Unmarshal(v, &out.SeriesID) // an invalid id stays zero
		case name == "confidence":
			_ = json.Unmarshal(v, &out.Confidence) // an invalid number stays zero
		}
	}
	payload, media := address(&in.PayloadURL), address(in.MediaURL)
	if out.SeriesID == uuid.Nil || out.External == "" || utf8.RuneCountInString(out.External) > 500 || payload == nil || !(out.Confidence >= 0 && out.Confidence <= 1) {
		return nil
	}
	out.Payload = *payload
	if out.Media = media; media != nil {
		kind := "other"
		if k := in.MediaURLKind; k != nil && slices.Contains([]string{"torrent", "magnet", "direct"}, *k) {
			kind = *k
		}
		out.MediaKind = &kind
	}
	if out.Info != nil {
		*out.Info = strings.ToLower(*out.Info)
	}
	if in.Language != nil {
		if tag := language.Tag(*in.Language); tag != "" && len(tag) <= 100 {
			out.Language = &tag
		}
	}
	if at := utc(in.ObservedAt); at != nil && at.Before(now) {
		out.Observed = *at
	}
	return out
}

// utc returns a time in UTC, nil if its year does not have four digits.
func utc(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	out := at.UTC()
	if out.Year() < 1 || out.Year() > 9999 {
		return nil
	}
	return &out
}

// clean removes what the database cannot store from a text.
func clean(text string) string { return strings.TrimSpace(cut.Storable(text)) }

// line returns a single-line text of at most that many characters, else nil.
func line(text *string, most int) *string {
	if text == nil {
		return nil
	}
	out := clean(*text)
	if !naming.Printable(&out) || utf8.RuneCountInString(out) > most {
		return nil
	}
	return &out
}

// address returns a URL that a browser may safely open, else nil.
func address(text *string) *string {
	out := line(text, 4000)
	if out == nil {
		return nil
	}
	u, err := url.Parse(*out)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") && u.Scheme != "magnet" {
		return nil
	}
	return out
}

// spans returns the valid spans, nil if there are none.
func spans(all []Span) []Span {
	all = slices.DeleteFunc(all, func(s Span) bool { return !amount(s.Start) || !amount(s.End) || s.End < s.Start })
	if len(all) == 0 {
		return nil
	}
	return all[:min(len(all), maxSpans)]
}

// last returns the highest end of the spans, and whether there is one.
func last(all []Span) (end float64, ok bool) {
	end = math.Inf(-1)
	for _, s := range all {
		end = max(end, s.End)
	}
	return end, len(all) > 0
}

// hints returns JSON that the database can store, else nil.
func hints(raw json.RawMessage) json.RawMessage {
	var v any
	if len(raw) > maxHints || json.Unmarshal(raw, &v) != nil || v == nil {
		return nil
	}
	v, ok := cleaned(v, maxDepth)
	out, err := json.Marshal(v)
	if !ok || err != nil || len(out) > maxHints {
		return nil
	}
	return out
}

// cleaned returns a value with cleaned texts. It reports false if the value is nested too deeply, or contains a number
// that the database would write with many more digits: 1e300 has 301.
func cleaned(v any, depth int) (any, bool) {
	if depth == 0 {
		return nil, false
	}
	all := true
	switch v := v.(type) {
	case string:
		return clean(v), true
	case float64:
		return v, v == 0 || math.Abs(v) >= 1e-20 && math.Abs(v) <= 1e20
	case []any:
		for i := range v {
			e, ok := cleaned(v[i], depth-1)
			v[i], all = e, all && ok
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			e, ok := cleaned(e, depth-1)
			out[clean(k)], all = e, all && ok
		}
		return out, all
	}
	return v, all
}

// usable returns a valid source, and whether it is one.
func (n Named) usable() (Named, bool) {
	key, name := line(&n.SourceKey, 200), line(&n.DisplayName, 200)
	if key == nil || !slices.Contains(plug.SourceKinds, n.Kind) || len(n.Config) > maxSourceConfig {
		return n, false
	}
	n.SourceKey, n.DisplayName = *key, ""
	if name != nil {
		n.DisplayName = *name
	}
	if n.Config != nil {
		var v any
		if json.Unmarshal(n.Config, &v) != nil {
			return n, false
		}
		v, ok := cleaned(v, maxDepth)
		data, err := json.Marshal(v)
		if !ok || err != nil {
			return n, false
		}
		n.Config = data
	}
	return n, true
}
