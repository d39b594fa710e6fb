package release

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/plug"
)

// Limits of the data for a plugin.
const (
	mostTracked = 10_000
	mostLatest  = 2000     // torrents of all sources
	maxTorrents = 1 << 19  // bytes of the torrents' names
	mostNeeded  = 50       // services whose ids it requires
	maxAliases  = 64 << 10 // bytes of JSON per series, for its titles
)

// recordedSQL selects the releases of a source, with plug.Key of their ids.
const recordedSQL = `select id, left(encode(sha256(convert_to(external_release_id, 'UTF8')), 'base64'), 16) as key from release
	where tenant_id = app.tenant() and source_id = $1 order by created_at desc, id desc limit $2`

// announcing is the part of a manifest about releases.
type announcing struct {
	RequiresAliases     bool     `json:"requiresAliases"`
	RequiresExternalIDs []string `json:"requiresExternalIds"`
}

// needs decodes a manifest's releaseSource, which may also be true.
func needs(raw json.RawMessage) (out announcing) {
	_ = json.Unmarshal(raw, &out) // true requires nothing
	out.RequiresExternalIDs = out.RequiresExternalIDs[:min(len(out.RequiresExternalIDs), mostNeeded)]
	return out
}

// told is a series in the data for a plugin.
type told struct {
	ID       uuid.UUID         `db:"id"`
	Aliases  []string          `db:"aliases"`
	External map[string]string `db:"external"`
	Chapter  *float64          `db:"chapter"`
	Volume   *float64          `db:"volume"`
	Unseen   bool              `db:"unseen"` // it may not have been in the poll that stored the ETag
	Of       int64             `db:"of"`     // number of series to send
}

// trackedSQL selects the series after $2 to send to a plugin, and their number ($6 at most): the first with $7 bytes,
// and one more. Their data is looked up only for these. Of several ids of a service, the last one of jsonb_object_agg
// stays: that under the bare name, else that of the plugin.
const trackedSQL = `select x.id, x.chapter, x.volume, x.aliases, x.external, x.unseen, x.of from (
	  select y.*, sum(y.size) over (order by y.id) - y.size as before from (
	    select z.*, coalesce(octet_length(array_to_string(z.aliases, '')), 0) + coalesce(octet_length(z.external::text), 0) as size from (
	      select s.id, s.of, s.unseen, greatest(s.latest_chapter, o.chapter)::double precision as chapter, greatest(s.latest_volume, o.volume)::double precision as volume,
	        case when $3 then array(select a.alias from series_alias a where a.tenant_id = app.tenant() and a.series_id = s.id
	          union select a.title from alternate_title a where a.tenant_id = app.tenant() and a.series_id = s.id union select s.title order by 1 limit 300) end as aliases,
	        (select jsonb_object_agg(n.name, e.external_id order by e.source = n.name, e.source <> 'api:' || n.name) from unnest($4::text[]) n(name) join external_id e on e.tenant_id = app.tenant() and e.series_id = s.id
	          and e.source in (n.name, 'plugin:' || n.name, 'api:' || n.name)) as external
	      from (select s.id, s.title, t.latest_chapter, t.latest_volume, least(count(*) over (), $6) as of,
	          t.poll_interval is not null or coalesce(t.updated_at > $5, false) as unseen
	          from series_tracking t join series s on s.tenant_id = app.tenant() and s.id = t.series_id
	          where t.tenant_id = app.tenant() and t.tracked and ($2::uuid is null or t.series_id > $2) and ($1::uuid[] = '{}' or s.library_id = any($1))
	            and (t.poll_interval is null or $5::timestamptz is null or t.updated_at > $5
	              or floor(extract(epoch from now()) / t.poll_interval) > floor(extract(epoch from $5::timestamptz) / t.poll_interval))
	          order by t.series_id limit $6) s
	      cross join lateral (select max(b.volume) as volume, max(b.chapter) as chapter from book b
	        where b.tenant_id = app.tenant() and b.series_id = s.id and b.deleted_at is null) o
	      order by s.id offset 0) z offset 0) y) x
	where x.before <= $7 order by x.id`

// Known returns what the plugin may request during a poll: tracked series of the plugin's libraries, with the data that
// its manifest requires. If the series are too many, the rest follows with the next polls.
func (p *Poll) Known(ctx context.Context, d *db.DB) (*plug.Known, error) {
	out := &plug.Releases{Source: p.ID.String(), Recorded: map[string]string{}, Torrents: map[string]string{}}
	need := needs(p.Announces)
	var b pgx.Batch
	var all []told
	var latest []struct {
		ID  uuid.UUID `db:"id"`
		Key string    `db:"key"`
	}
	db.All(&b, &all, trackedSQL,
		append([]uuid.UUID{}, p.LibraryIDs...), p.ResumeAfter, need.RequiresAliases, append([]string{}, need.RequiresExternalIDs...), p.CoveredAt, mostTracked+1, plug.MaxTracked)
	db.All(&b, &latest, recordedSQL, p.ID, mostKept)
	db.Value(&b, &p.asOf, "select now()")
	var torrents []struct {
		ID     uuid.UUID `db:"id"`
		Series uuid.UUID `db:"series_id"`
		Info   string    `db:"info"`
	}
	db.All(&b, &torrents, `select r.id, r.series_id, r.info from release r join release_source s on s.tenant_id = r.tenant_id and s.id = r.source_id and s.plugin_id is not null
		where r.tenant_id = app.tenant() and r.info is not null order by r.created_at desc, r.id desc limit $1`, mostLatest)
	db.Values(&b, &out.Sources, "select name from release_source where tenant_id = app.tenant() and plugin_id = $1 order by name", p.PluginID)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	size := 0
	p.resume, p.unseen = nil, false
	if n := len(all); n > 0 && int64(n) < all[0].Of {
		p.resume = &all[n-1].ID
	}
	for i, s := range all {
		t := plug.Tracked{SeriesID: s.ID.String(), Aliases: fitting(s.Aliases), ExternalIDs: s.External, LatestKnownChapter: s.Chapter, LatestKnownVolume: s.Volume}
		data, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		if size += len(data); size > plug.MaxTracked || i == mostTracked {
			if i > 0 {
				p.resume = &all[i-1].ID
			}
			break
		}
		out.Tracked = append(out.Tracked, t)
		p.unseen = p.unseen || s.Unseen
	}
	out.ETag = p.etag()
	for _, r := range latest {
		out.Recorded[r.Key] = r.ID.String()
	}
	p.recorded = out.Recorded
	left := maxTorrents
	for _, r := range torrents {
		torrent := plug.Torrent(r.Series, r.Info)
		if !fits(&left, torrent) {
			break
		}
		out.Torrents[torrent] = r.ID.String()
	}
	return &plug.Known{Releases: out}, nil
}

// fits reports whether a name in JSON and the id of its release take no more than the bytes that are left.
func fits(left *int, name string) bool {
	data, _ := json.Marshal(name) // a string can always be written
	*left -= len(data) + len(uuid.Nil.String())
	return *left >= 0
}

// fitting returns as many titles of a series as fit the limit.
func fitting(titles []string) []string {
	size := 0
	for i, t := range titles {
		data, err := json.Marshal(t)
		if size += len(data) + 1; err != nil || size > maxAliases {
			return titles[:i]
		}
	}
	return titles
}

// Take merges what the plugin sent during the request into its response, including named sources.
func (r *Result) Take(said *plug.Changes) {
	if said == nil || said.Releases == nil {
		return
	}
	r.recorded = append(r.recorded, said.Releases.Recorded...)
	if said.Releases.ETag != nil {
		r.ETag = said.Releases.ETag
	}
	r.sources = said.Releases.Sources
	if id, err := uuid.Parse(said.Releases.Reached); err == nil {
		r.reached = &id
	}
}

// Sources returns the sources that a plugin has named during a request; nil if there are none.
func Sources(said *plug.Changes) []Named {
	if said == nil || said.Releases == nil {
		return nil
	}
	return namedIn(said.Releases.Sources)
}

func namedIn(raw []json.RawMessage) []Named {
	if raw == nil {
		return nil
	}
	out := []Named{}
	for _, s := range raw {
		var n Named
		if json.Unmarshal(s, &n) == nil {
			out = append(out, n)
		}
	}
	return out
}

// candidates returns the usable releases of a poll in their stored form, and the numbers of all and of those recorded
// before, which count for no limit.
func (r *Result) candidates(now time.Time, recorded map[string]string) (all []*candidate, total, known int) {
	seen := map[string]bool{}
	for _, c := range r.recorded {
		if out := read(c.Candidate, now); out != nil && !seen[out.External] {
			if id, err := uuid.Parse(c.ID); err == nil {
				out.ID = id
			}
			seen[out.External], all = true, append(all, out)
		}
	}
	total = len(r.recorded)
	most := len(all) + mostCandidates
	for _, raw := range r.Candidates {
		out := read(raw, now)
		switch {
		case out == nil:
		case seen[out.External]: // also recorded during the request
			continue
		case recorded[plug.Key(out.External)] != "":
			known++
		case len(all) < most:
			all = append(all, out)
		}
		total++
	}
	slices.SortStableFunc(all, func(a, b *candidate) int { return a.Observed.Compare(b.Observed) })
	return all, total, known
}
