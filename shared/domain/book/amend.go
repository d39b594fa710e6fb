package book

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Amended is the metadata after a change.
type Amended struct {
	BookID uuid.UUID `json:"bookId"`
	Metadata
}

// mapped applies f to a text; nil stays nil.
func mapped(text *string, f func(string) string) *string {
	if text == nil {
		return nil
	}
	return new(f(*text))
}

// SortTitleSQL returns the SQL equivalent of naming.SortTitle for a stored title.
func SortTitleSQL(title string) string {
	return "normalize(regexp_replace(" + title + `, '\s+', ' ', 'g'))`
}

// change is a body, prepared for the update of a metadata document.
type change struct {
	document, people string   // JSON: the values to set, and the authors
	names            []string // of all changed fields
	locks            []string // to set
	roles            []string // whose people are replaced; all if whole is true
	whole            bool
	nobody           bool // authors become null, not an empty list
	titled           bool // there is a new title
	replace          bool // PUT: all fields are replaced
}

func (b *MetadataBody) change(replace bool) (*change, error) {
	set, names, locks := b.said(replace)
	people, roles, whole := b.people(replace)
	document, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	authors, err := json.Marshal(people)
	if err != nil {
		return nil, err
	}
	nobody := whole && b.Authors.Value == nil && len(people) == 0
	return &change{document: string(document), people: string(authors), names: names, locks: locks, roles: roles, whole: whole, nobody: nobody,
		titled: b.Title.Value != nil, replace: replace}, nil
}

// sql returns the upsert of the metadata of the books that match the condition which, in order of their ids. Its
// parameters come from args; the first one is ids.
func (c *change) sql(which string) string {
	return `insert into book_metadata as m (tenant_id, book_id, metadata, locks)
		select app.tenant(), id, $2::jsonb || jsonb_build_object('authors', $3::jsonb), $4 from book
		where tenant_id = app.tenant() and ` + which + ` and deleted_at is null order by id
		on conflict (tenant_id, book_id) do update set updated_at = case when $8 then now() else m.updated_at end,
		  metadata = (m.metadata - $5::text[] - ` + staleSort("$9") + `) || $2::jsonb || case when $6 then jsonb_build_object('authors', $3::jsonb)
		    when cardinality($7::text[]) > 0 then jsonb_build_object('authors', coalesce((select jsonb_agg(a) from jsonb_array_elements(
		      case jsonb_typeof(m.metadata -> 'authors') when 'array' then m.metadata -> 'authors' else '[]' end) a where not a ->> 'role' = any($7)), '[]') || $3::jsonb)
		    else '{}' end,
		  locks = array(select unnest(m.locks) union select unnest(excluded.locks))`
}

func (c *change) args(ids any) []any {
	changed, roles := slices.Clone(c.names), orEmpty(c.roles)
	if c.nobody {
		roles = []string{}
	} else {
		changed = slices.DeleteFunc(changed, func(n string) bool { return n == "authors" })
	}
	return []any{ids, c.document, c.people, c.locks, changed, c.whole && !c.nobody, roles, len(c.names) > 0, c.titled}
}

// amendment is the result of a change of metadata.
type amendment struct {
	answer *Amended
	book   *Patched
	fields []string // the written ones
}

// amend changes a book's metadata and locks the fields that get a value; replace clears absent fields. It takes one
// round trip.
func amend(ctx context.Context, d *db.DB, added task.Added, id uuid.UUID, body *MetadataBody, replace bool) (*amendment, error) {
	if body.Title.Value == nil && replace {
		body.Title.Set = false
	}
	if err := body.check(); err != nil {
		return nil, err
	}
	c, err := body.change(replace)
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	var at *Patched
	var meta *metadataRow
	renaming, err := queueRenaming(&b, id, body, c)
	if err != nil {
		return nil, err
	}
	queueLock(&b, id)
	queueAmend(&b, &at, id, body, c)
	db.One(&b, &meta, "select "+metadataColumns+" from book_metadata where tenant_id = app.tenant() and book_id = $1", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if at == nil || meta == nil {
		return nil, fault.Missing("Book")
	}
	if *renaming > 0 {
		added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	}
	m, err := meta.metadata()
	if err != nil {
		return nil, err
	}
	return &amendment{&Amended{id, *m}, at, c.names}, nil
}

// QueueFill adds the update of metadata fields by a plugin to the batch. Unlike amend it locks nothing. It writes
// nothing if the locks have changed from locks meanwhile (Conflict). After the batch has run, renaming is 1 if a task
// to rename the books of the series was added.
func QueueFill(b *pgx.Batch, id uuid.UUID, locks []string, body *MetadataBody) (renaming *int64, err error) {
	if err := body.check(); err != nil {
		return nil, err
	}
	c, err := body.change(false)
	if err != nil {
		return nil, err
	}
	c.locks = []string{}
	var at *Patched
	if renaming, err = queueRenaming(b, id, body, c); err != nil {
		return nil, err
	}
	b.Queue("select app.check_locks('book', $1, $2)", id, locks)
	queueAmend(b, &at, id, body, c)
	b.Queue(`update book_metadata set metadata = metadata || jsonb_build_object('filled', (select coalesce(jsonb_agg(f), '[]') from (
		  select jsonb_array_elements_text(metadata -> 'filled') union select unnest($2::text[])) x(f)))
		where tenant_id = app.tenant() and book_id = $1 and cardinality($2::text[]) > 0`, id, c.filled())
	return renaming, nil
}

// filled returns the changed fields that the next analysis keeps unless the file sets them. Title, volume and chapter
// are left out: they follow the file by the library's strategy.
func (c *change) filled() []string {
	out := slices.DeleteFunc(slices.Clone(c.names), func(n string) bool {
		return n == "title" || n == "titleSort" || n == "volume" || n == "chapter" || n == "authors" || slices.Contains(c.roles, strings.Replace(n, "coverArtist", "cover_artist", 1))
	})
	if len(c.roles) > 0 || c.whole {
		out = append(out, "authors")
	}
	return out
}

// queueRenaming is queueNaming for a body. It must precede queueAmend, because tasks are locked before books.
func queueRenaming(b *pgx.Batch, id uuid.UUID, body *MetadataBody, c *change) (*int64, error) {
	body.Volume.Set, body.Chapter.Set = slices.Contains(c.names, "volume"), slices.Contains(c.names, "chapter")
	return queueNaming(b, id, body.Volume, body.Chapter)
}

// queueAmend adds the update by a validated body to the batch.
func queueAmend(b *pgx.Batch, at **Patched, id uuid.UUID, body *MetadataBody, c *change) {
	// In a PUT, null leaves a volume or chapter that came from the file name.
	const noted = "exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = k.id and m.metadata ? "
	db.One(b, at, `update book k set volume = case when $2 and (not $12 or $3::integer is not null or `+noted+`'volume')) then $3 else k.volume end,
		  chapter = case when $4 and (not $12 or $5::double precision is not null or `+noted+`'chapter')) then $5 else k.chapter end,
		  updated_at = case when $6 then now() else k.updated_at end,
		  title = coalesce($7, k.title), search_title = coalesce($8, k.search_title),
		  title_sort = case when $9 then coalesce($10, $11, `+SortTitleSQL("k.title")+`)
		    when exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = k.id and `+SortHeld+`) then k.title_sort
		    else coalesce($11, k.title_sort) end
		where k.tenant_id = app.tenant() and k.id = $1 and k.deleted_at is null
		returning k.id, k.title, k.number, k.volume, k.chapter, k.updated_at, k.library_id, k.series_id`,
		id, body.Volume.Set, body.Volume.Value, body.Chapter.Set, body.Chapter.Value, len(c.names) > 0,
		body.Title.Value, mapped(body.Title.Value, naming.Normalize), body.TitleSort.Set, body.TitleSort.Value, mapped(body.Title.Value, naming.SortTitle), c.replace)
	b.Queue(c.sql("id = $1"), c.args(id)...)
}
