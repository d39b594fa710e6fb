package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/fault"
)

// item is a series or book to ask a plugin about.
type item struct {
	ID       uuid.UUID `json:"id" db:"id"`
	SeriesID uuid.UUID `json:"seriesId" db:"series_id"`
	External string    `json:"externalId,omitempty" db:"external"` // id at the plugin, "" if it must be searched for
	Tries    int       `json:"tries,omitempty" db:"-"`             // failures that were not the item's fault
}

// candidate is an item of a library.
type candidate struct {
	item
	Title  string `db:"title"`  // of the series
	Place  string `db:"place"`  // sort key of the run: items are processed in this order
	NoID   bool   `db:"no_id"`  // no id, and searching is disabled
	Recent bool   `db:"recent"` // refreshed a short time ago
}

// candidates is SQL for the series or books of library $1 with their ids at plugin $2. With $3, items without an
// id are marked no_id; those refreshed within $4 seconds are marked recent; $5 says whether the stored id is used.
func candidates(kind string) string {
	table, place, series, title, there := "series", "path", "i.id", "i.title", ""
	if kind == "book" {
		table, place, series, there = "book", "key", "i.series_id", " and i.deleted_at is null"
		title = "(select s.title from series s where s.tenant_id = i.tenant_id and s.id = i.series_id)"
	}
	return fmt.Sprintf(`select i.id, %s as series_id, %s as title, i.%s as place, case when $5 then coalesce(x.external_id, '') else '' end as external,
		$3 and x.id is null as no_id, coalesce(x.last_synced_at > now() - make_interval(secs => $4), false) as recent
		from %[4]s i left join external_id x on x.tenant_id = i.tenant_id and x.%[4]s_id = i.id and x.%[4]s_id is not null and x.source = $2
		where i.tenant_id = app.tenant() and i.library_id = $1%[5]s`, series, title, place, table, there)
}

// arguments returns the arguments of candidates.
func (c *JobConfig) arguments(p *Plugin, library uuid.UUID) []any {
	return []any{library, sourcePrefix + p.Name, c.ExistingSourceIDsOnly, c.SkipRecentlySyncedWithinS, c.ExistingSourceIDsOnly || p.UseExistingExternalID}
}

// SQL for at most $7 candidates after the place $6; for their counts; and for a sample of $6.
func nextOf(kind string) string {
	return "select * from (" + candidates(kind) + ") c where c.place > $6 order by c.place limit $7"
}

func countOf(kind string) string {
	return `select count(*) filter (where not c.no_id and not c.recent) as eligible, count(*) filter (where c.no_id) as no_id,
		count(*) filter (where c.recent and not c.no_id) as recent, count(*) filter (where not c.no_id and not c.recent and c.external = '') as searched
		from (` + candidates(kind) + ") c"
}

// sampleOf selects a sample of $6; of the candidates that must be searched for, only those in $7 (null: all).
func sampleOf(kind string) string {
	return "select * from (" + candidates(kind) + ") c where not c.no_id and not c.recent and ($7::uuid[] is null or c.external <> '' or c.id = any($7)) order by c.place limit $6"
}

// searchedOf selects $6 random candidates that must be searched for.
func searchedOf(kind string) string {
	return "select c.id, c.series_id, c.external from (" + candidates(kind) + ") c where not c.no_id and not c.recent and c.external = '' order by uuid_hash(c.id) limit $6"
}

// plan returns why a job cannot ask a plugin about a library, or nil.
func (c *JobConfig) plan(p *Plugin, library uuid.UUID) error {
	if p == nil || p.PluginType != system {
		return fault.New(fault.BadRequest, "There is no plugin %q", c.plugin())
	}
	if err := p.usable(); err != nil {
		return err
	}
	for _, kind := range c.kinds() {
		if err := p.about(kind, library); err != nil {
			return err
		}
	}
	return nil
}

// answer is the result for one item.
type answer struct {
	seriesTitle string
	bookTitle   *string  // for a book
	done        *Applied // nil if the plugin does not know it
	why         string   // the reason if done is nil
}

// askAbout asks a plugin about an item and writes its metadata. A dry run does not use the longer timeout of tasks.
func (r *Runner) askAbout(ctx context.Context, plugin uuid.UUID, kind string, i *item, o options) (*answer, error) {
	m, err := r.matchable(ctx, plugin, kind, i, !o.dry)
	if err != nil {
		return nil, err
	}
	m.plugin.hurried = o.dry
	out := &answer{seriesTitle: m.series.Metadata.Title}
	if m.book != nil {
		out.bookTitle = &m.book.Title
	}
	if i.External == "" {
		if out.why, err = r.unwanted(ctx, m); err != nil || out.why != "" {
			return out, err
		}
	}
	if m.book != nil {
		return out, r.askAboutBook(ctx, m, i.External, o, out)
	}
	matched, err := r.match(ctx, m, "", i.External, o)
	if err != nil {
		return out, err
	}
	out.done, out.why = matched.done, matched.Message
	return out, nil
}

// askAboutBook is match for a book, into out; id is the plugin's id of the book, "" if it must be searched for.
func (r *Runner) askAboutBook(ctx context.Context, m *matchable, id string, o options, out *answer) error {
	var before []*asked
	if id == "" {
		best, why, a := r.findBook(ctx, m)
		if a.fault != nil || best == nil {
			out.why = why
			return r.errNoted(ctx, m.plugin, a)
		}
		id, before = best.ExternalID, append(before, a)
	}
	var err error
	out.done, err = r.apply(ctx, m.plugin, &bookEdit{aBook: m.book}, id, o, before...)
	return foundAlready(err, id)
}

// subject is a series, or a book with its series.
type subject struct {
	series *series.Details
	book   *aBook // nil for a series
}

// queueSubject adds the selects of an item to the batch.
func queueSubject(b *pgx.Batch, kind string, i *item) (load func() (subject, error)) {
	if kind != "book" {
		loadSeries := series.QueueDetails(b, i.ID)
		return func() (s subject, err error) {
			s.series, err = loadSeries()
			return s, err
		}
	}
	d := &aBook{}
	loadBook, loadSeries := book.QueueDetails(b, i.ID, false), series.QueueDetails(b, i.SeriesID)
	reference.QueueBook(b, &d.elsewhere, i.ID)
	return func() (s subject, err error) {
		if d.Details, err = loadBook(); err != nil {
			return s, err
		}
		s.book = d
		s.series, err = loadSeries()
		return s, err
	}
}

func (s *subject) kind() string {
	if s.book != nil {
		return "book"
	}
	return "series"
}

func (s *subject) library() uuid.UUID {
	if s.book != nil {
		return s.book.LibraryID
	}
	return s.series.LibraryID
}

// context returns the variables of templates and conditions.
func (s *subject) context() (map[string]any, error) {
	if s.book != nil {
		return contextOfBook(s.book, s.series)
	}
	return contextOf(s.series)
}

// findBook is search for a book: by its ISBN, if it has one, its title and first author.
func (r *Runner) findBook(ctx context.Context, m *matchable) (best *SearchResult, why string, a *asked) {
	query, title := m.book.Title, m.series.Metadata.Title
	if !strings.Contains(strings.ToLower(query), strings.ToLower(title)) { // for example "Volume 3"
		query = title + " " + query
	}
	params := map[string]any{}
	if now := m.book.Metadata; now != nil {
		if now.ISBNs != nil {
			if isbn, _, _ := strings.Cut(strings.Trim(*now.ISBNs, `[]"`), `"`); isbn != "" { // the first of a JSON list
				params["isbn"] = isbn
			}
		}
		if len(now.Authors) > 0 {
			params["author"] = now.Authors[0].Name
		}
		if now.Year != nil {
			params["year"] = *now.Year
		}
	}
	return r.search(ctx, m, clip(query), params)
}
