package host

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/plug"
)

// announces reports whether the manifest says that the plugin announces releases.
func announces(manifest json.RawMessage) bool {
	var m struct {
		Capabilities struct{ ReleaseSource json.RawMessage }
	}
	if json.Unmarshal(manifest, &m) != nil {
		return false
	}
	said := string(m.Capabilities.ReleaseSource)
	return said != "" && said != "null" && said != "false"
}

// released returns the call's changes of releases.
func (d *desk) released() *plug.ReleaseChanges {
	if d.changes.Releases == nil {
		d.changes.Releases = &plug.ReleaseChanges{}
	}
	return d.changes.Releases
}

// releases returns what the plugin may know about releases, or an error if it may not. params name the polled source.
func (d *desk) releases(params json.RawMessage, dst any) (*plug.Releases, *rpcError) {
	known := d.known.Releases
	if known == nil {
		return nil, &rpcError{Code: methodNotFound, Message: "Longbox offers this to plugins whose manifest has the capability releaseSource, when they are polled"}
	}
	var in struct{ SourceID string }
	if refused := parameters(params, &in); refused != nil {
		return nil, refused
	}
	if known.Source == "" || in.SourceID != "" && in.SourceID != known.Source {
		return nil, refuse("sourceId must be the id of the source that is polled")
	}
	if dst == nil {
		return known, nil
	}
	return known, parameters(params, dst)
}

// maxPage limits a response with tracked series, in bytes. It has at least one series.
const maxPage = 256 << 10

// weightOf returns the maximum size of a tracked series in JSON, without escaping.
func weightOf(t plug.Tracked) int {
	size := 150 + len(t.SeriesID)
	for _, a := range t.Aliases {
		size += len(a) + 3
	}
	for source, id := range t.ExternalIDs {
		size += len(source) + len(id) + 6
	}
	return size
}

func (d *desk) listTracked(params json.RawMessage) (any, *rpcError) {
	in := struct{ Limit, Offset int }{Limit: 200}
	known, refused := d.releases(params, &in)
	if refused != nil {
		return nil, refused
	}
	if in.Limit < 1 || in.Limit > 1000 || in.Offset < 0 {
		return nil, refuse("limit must be 1 to 1000, and offset at least 0")
	}
	from := min(in.Offset, len(known.Tracked))
	to, size := from, 0
	for to < min(from+in.Limit, len(known.Tracked)) {
		if size += weightOf(known.Tracked[to]); size > maxPage && to > from {
			break
		}
		to++
	}
	out := map[string]any{"tracked": append([]plug.Tracked{}, known.Tracked[from:to]...)}
	if to < len(known.Tracked) {
		out["nextOffset"] = to
	}
	return out, nil
}

func (d *desk) countTracked(params json.RawMessage) (any, *rpcError) {
	known, refused := d.releases(params, nil)
	if refused != nil {
		return nil, refused
	}
	return map[string]int{"count": len(known.Tracked)}, nil
}

// record accepts a release. It is checked when it is stored.
func (d *desk) record(params json.RawMessage) (any, *rpcError) {
	var in struct{ Candidate json.RawMessage }
	known, refused := d.releases(params, &in)
	if refused != nil {
		return nil, refused
	}
	var of struct{ ExternalReleaseID string }
	if len(in.Candidate) == 0 || json.Unmarshal(in.Candidate, &of) != nil || of.ExternalReleaseID == "" {
		return nil, refuse("candidate must be an object with an externalReleaseId")
	}
	key := plug.Key(of.ExternalReleaseID)
	series, torrent := plug.TorrentOf(in.Candidate)
	d.reach(known, series.String())
	for _, there := range []string{known.Recorded[key], known.Torrents[torrent]} {
		if there != "" {
			return map[string]any{"ledgerId": there, "deduped": true}, nil
		}
	}
	said := d.released()
	size := weight(in.Candidate)
	for _, r := range said.Recorded {
		size += weight(r.Candidate)
	}
	if len(said.Recorded) >= plug.MaxCandidates || size > plug.MaxRecorded {
		return nil, refuse("no more than %d releases and %d bytes are taken in one poll", plug.MaxCandidates, plug.MaxRecorded)
	}
	id := uuid.Must(uuid.NewV7()).String()
	said.Recorded = append(said.Recorded, plug.Recorded{ID: id, Candidate: in.Candidate})
	if known.Recorded == nil {
		known.Recorded = map[string]string{}
	}
	known.Recorded[key] = id
	return map[string]any{"ledgerId": id, "deduped": false}, nil
}

// reach notes how far the plugin has come in the series that it was sent, which are in the order of their ids.
func (d *desk) reach(known *plug.Releases, series string) {
	_, sent := slices.BinarySearchFunc(known.Tracked, series, func(t plug.Tracked, id string) int { return strings.Compare(t.SeriesID, id) })
	if sent {
		d.released().Reached = max(d.released().Reached, series)
	}
}

// progress is accepted and ignored: the answer comes soon enough.
func (d *desk) progress(params json.RawMessage) (any, *rpcError) {
	if _, refused := d.releases(params, nil); refused != nil {
		return nil, refused
	}
	return map[string]bool{"success": true}, nil
}

func (d *desk) sourceState(params json.RawMessage) (any, *rpcError) {
	known, refused := d.releases(params, nil)
	if refused != nil {
		return nil, refused
	}
	return map[string]any{"etag": known.ETag}, nil
}

func (d *desk) setSourceState(params json.RawMessage) (any, *rpcError) {
	var in struct{ ETag *string }
	known, refused := d.releases(params, &in)
	switch {
	case refused != nil:
		return nil, refused
	case in.ETag == nil || len(*in.ETag) > 1000:
		return nil, refuse("etag must be a text of at most 1000 bytes")
	}
	known.ETag, d.released().ETag = in.ETag, in.ETag
	return map[string]bool{"success": true}, nil
}

// maxSources limits the data about a plugin's sources, in bytes.
const maxSources = 256 << 10

// registerSources also works without a poll: when the plugin is enabled.
func (d *desk) registerSources(params json.RawMessage) (any, *rpcError) {
	known := d.known.Releases
	if known == nil {
		return nil, &rpcError{Code: methodNotFound, Message: "Longbox offers this to plugins whose manifest has the capability releaseSource, when they are polled or enabled"}
	}
	var in struct{ Sources []json.RawMessage }
	if refused := parameters(params, &in); refused != nil {
		return nil, refused
	}
	if in.Sources == nil || len(in.Sources) > plug.MaxSources || weight(params) > maxSources {
		return nil, refuse("sources must be a list of at most %d, of %d bytes in all", plug.MaxSources, maxSources)
	}
	var keys []string
	for _, raw := range in.Sources {
		var of struct{ SourceKey, Kind string }
		if json.Unmarshal(raw, &of) != nil || of.SourceKey == "" || len(of.SourceKey) > 200 || !slices.Contains(plug.SourceKinds, of.Kind) {
			return nil, refuse("each source must have a sourceKey of at most 200 bytes and a kind, one of %v", plug.SourceKinds)
		}
		if !slices.Contains(keys, of.SourceKey) {
			keys = append(keys, of.SourceKey)
		}
	}
	pruned := 0
	for _, k := range known.Sources {
		if !slices.Contains(keys, k) {
			pruned++
		}
	}
	known.Sources, d.released().Sources = keys, in.Sources
	return map[string]int{"registered": len(keys), "pruned": pruned}, nil
}
