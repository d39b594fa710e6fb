package book

import (
	"context"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// PatchInput changes fields of a book. Each field that gets a value is locked.
type PatchInput struct {
	httpapi.IDInput
	Body struct {
		Title   httpapi.Optional[string]  `json:"title,omitempty" minLength:"1" maxLength:"1000" nullable:"false"`
		Number  httpapi.Optional[float64] `json:"number,omitempty" minimum:"-1000000000" maximum:"1000000000" doc:"Null clears the number"`
		Volume  httpapi.Optional[int32]   `json:"volume,omitempty" minimum:"0" maximum:"9999999"`
		Chapter httpapi.Optional[float64] `json:"chapter,omitempty" minimum:"-1000000000" maximum:"1000000000"`
	}
}

// Patched is the book after a change.
type Patched struct {
	ID        uuid.UUID `json:"id" db:"id"`
	Title     string    `json:"title" db:"title"`
	Number    *float64  `json:"number" db:"number"`
	Volume    *int32    `json:"volume" db:"volume"`
	Chapter   *float64  `json:"chapter" db:"chapter"`
	UpdatedAt time.Time `json:"updatedAt" db:"updated_at"`
	LibraryID uuid.UUID `json:"-" db:"library_id"`
	SeriesID  uuid.UUID `json:"-" db:"series_id"`
}

// updated returns the event for the changed fields.
func (p *Patched) updated(fields []string) events.Event {
	return events.BookUpdated(events.Book{ID: p.ID, SeriesID: p.SeriesID, LibraryID: p.LibraryID}, fields...)
}

// LockChanges sets (true) or clears (false) locks; absent or null leaves a lock as it is.
type LockChanges map[string]*bool

// Schema lists every lock.
func (LockChanges) Schema(huma.Registry) *huma.Schema { return LockChangeSchema(lockNames) }

// UnmarshalJSON ignores members that are not locks.
func (c *LockChanges) UnmarshalJSON(data []byte) (err error) {
	*c, err = ReadLocks(lockNames, data)
	return err
}

// ReadLocks decodes the members of a JSON object that are in names; others are ignored. A null member becomes nil.
func ReadLocks(names []string, data []byte) (map[string]*bool, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	out := map[string]*bool{}
	for _, name := range names {
		if raw, sent := members[name]; sent {
			var on *bool
			if err := json.Unmarshal(raw, &on); err != nil {
				return nil, err
			}
			out[name] = on
		}
	}
	return out, nil
}

// LockChangeSchema is the schema of an object with a nullable boolean per name.
func LockChangeSchema(names []string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, AdditionalProperties: true}
	for _, n := range names {
		s.Properties[n] = &huma.Schema{Type: huma.TypeBoolean, Nullable: true}
	}
	return s
}

// edits registers the operations by which people change a book.
func edits(a *httpapi.API, d *db.DB, publish events.Publish, added task.Added) {
	bulk(a, d, publish)
	op := httpapi.Group{Path: "/api/v1/books/{id}", Tag: "Books"}.Op
	httpapi.Register(a, op("PATCH", "", "patchBook", "Update title, number, volume or chapter of a book and lock the fields that get a value", auth.BooksWrite),
		func(ctx context.Context, in *PatchInput) (*Patched, error) {
			p, fields, err := patch(ctx, d, added, in)
			if err != nil {
				return nil, err
			}
			if len(fields) > 0 {
				publish(ctx, httpapi.TenantOf(ctx).ID, p.updated(fields))
			}
			return p, nil
		})
	for _, c := range []struct {
		method, id, summary string
		replace             bool
	}{{"PATCH", "patchBookMetadata", "Update metadata fields of a book and lock the fields that get a value", false},
		{"PUT", "putBookMetadata", "Replace the metadata of a book: clear absent fields except title and titleSort, and lock the fields that get a value", true}} {
		httpapi.Register(a, op(c.method, "/metadata", c.id, c.summary, auth.BooksWrite),
			func(ctx context.Context, in *struct {
				httpapi.IDInput
				Body MetadataBody
			}) (*Amended, error) {
				done, err := amend(ctx, d, added, in.ID, &in.Body, c.replace)
				if err != nil {
					return nil, err
				}
				if len(done.fields) > 0 {
					publish(ctx, httpapi.TenantOf(ctx).ID, done.book.updated(done.fields))
				}
				return done.answer, nil
			})
	}
	httpapi.Register(a, op("GET", "/metadata/locks", "getBookLocks", "Get the metadata locks of a book; only users can change locked fields", auth.BooksRead),
		func(ctx context.Context, in *httpapi.IDInput) (*Locks, error) {
			locks, _, err := changeLocks(ctx, d, in.ID, nil)
			return locks, err
		})
	httpapi.Register(a, op("PUT", "/metadata/locks", "putBookLocks", "Lock or unlock metadata fields of a book", auth.BooksWrite),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body LockChanges
		}) (*Locks, error) {
			locks, at, err := changeLocks(ctx, d, in.ID, in.Body)
			if at != nil {
				publish(ctx, httpapi.TenantOf(ctx).ID, events.BookUpdated(*at, "locks"))
			}
			return locks, err
		})
}

func patch(ctx context.Context, d *db.DB, added task.Added, in *PatchInput) (*Patched, []string, error) {
	body := in.Body
	title := body.Title.Or("")
	if body.Title.Set && !naming.Printable(&title) {
		return nil, nil, fault.Invalid("title", "must contain visible characters and no control characters")
	}
	var fields, locks []string
	for _, f := range []struct {
		name       string
		set, value bool
	}{{"title", body.Title.Set, true}, {"number", body.Number.Set, body.Number.Value != nil},
		{"volume", body.Volume.Set, body.Volume.Value != nil}, {"chapter", body.Chapter.Set, body.Chapter.Value != nil}} {
		if f.set {
			fields = append(fields, f.name)
		}
		if f.set && f.value {
			locks = append(locks, f.name+"Lock")
		}
	}
	var b pgx.Batch
	var out *Patched
	renaming, err := queueNaming(&b, in.ID, body.Volume, body.Chapter)
	if err != nil {
		return nil, nil, err
	}
	queueLock(&b, in.ID)
	db.One(&b, &out, `update book k set
		  title = case when $2 then $3 else k.title end, search_title = case when $2 then $4 else k.search_title end,
		  title_sort = case when $2 and not exists (select from book_metadata m where m.tenant_id = app.tenant() and m.book_id = k.id and `+SortHeld+`)
		    then $5 else k.title_sort end,
		  number = case when $6 then $7 else k.number end, volume = case when $8 then $9 else k.volume end,
		  chapter = case when $10 then $11 else k.chapter end, updated_at = case when $12 then now() else k.updated_at end
		where k.tenant_id = app.tenant() and k.id = $1 and k.deleted_at is null
		returning k.id, k.title, k.number, k.volume, k.chapter, k.updated_at, k.library_id, k.series_id`, in.ID,
		body.Title.Set, title, naming.Normalize(title), naming.SortTitle(title), body.Number.Set, body.Number.Value,
		body.Volume.Set, body.Volume.Value, body.Chapter.Set, body.Chapter.Value, len(fields) > 0)
	b.Queue(`insert into book_metadata as m (tenant_id, book_id, metadata, locks)
		select app.tenant(), id, jsonb_strip_nulls(jsonb_build_object('title', case when $2 then title end, 'number', case when $3 then number::text end,
		  'volume', case when $4 then volume end, 'chapter', case when $5 then chapter end)), $6 from book where tenant_id = app.tenant() and id = $1 and deleted_at is null and $8
		on conflict (tenant_id, book_id) do update set
		  metadata = (m.metadata - $7::text[] - `+staleSort("$2")+`) || excluded.metadata,
		  locks = array(select unnest(m.locks) union select unnest(excluded.locks)), updated_at = now()`,
		in.ID, body.Title.Set, body.Number.Set, body.Volume.Set, body.Chapter.Set, orEmpty(locks), orEmpty(fields), len(fields) > 0)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	if out == nil {
		return nil, nil, fault.Missing("Book")
	}
	if *renaming > 0 {
		added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	}
	return out, fields, nil
}

// queueNaming adds the task that renames the books of a series, if the library's titles contain volume and chapter
// (series_name) and the book gets another volume or chapter. n is 1 if a task was added. It must precede the statement
// that changes the book. A task that waits is held until commit, so that no worker reads the books before the change.
func queueNaming(b *pgx.Batch, id uuid.UUID, volume httpapi.Optional[int32], chapter httpapi.Optional[float64]) (n *int64, err error) {
	n = new(int64)
	return n, task.AddNew(b, task.Spec{Type: task.RenumberSeries}, task.Found(`select b.library_id, b.series_id, null::uuid as book_id, '{}'::jsonb as params
		from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null and l.book_strategy = 'series_name'
		  and ($2 and b.volume is distinct from $3::integer or $4 and b.chapter is distinct from $5::double precision)
		  and not exists (select from task t where t.tenant_id = app.tenant() and t.library_id = b.library_id and t.type = 'renumber_series'
		    and t.series_id = b.series_id and t.status = 'pending' and not `+task.PutOffSQL+`
		    for share)`, id, volume.Set, volume.Value, chapter.Set, chapter.Value), n)
}

// queueLock blocks other edits of a book until commit: the locks of its metadata, which the next statement reads, stay
// as they are.
func queueLock(b *pgx.Batch, id uuid.UUID) {
	b.Queue("select from book where tenant_id = app.tenant() and id = $1 for no key update", id)
}

// SortHeld is SQL for metadata m with a locked titleSort. A lock without a value is no reason to keep the old title.
const SortHeld = "'titleSortLock' = any(m.locks) and m.metadata ? 'titleSort'"

// staleSort is SQL for the members of the metadata m that a new title makes stale: titleSort, unless it is locked.
// given is an SQL condition: there is a new title.
func staleSort(given string) string {
	return "case when " + given + " and not 'titleSortLock' = any(m.locks) then '{titleSort}' else '{}' end::text[]"
}

// changeLocks sets and clears locks. It returns all locks, and the book if any lock was given.
func changeLocks(ctx context.Context, d *db.DB, id uuid.UUID, changes LockChanges) (*Locks, *events.Book, error) {
	on, off := SplitLocks(lockNames, changes)
	var b pgx.Batch
	var row *struct {
		Locks     []string  `db:"locks"`
		SeriesID  uuid.UUID `db:"series_id"`
		LibraryID uuid.UUID `db:"library_id"`
	}
	if len(on)+len(off) > 0 {
		b.Queue(`insert into book_metadata as m (tenant_id, book_id, locks) select app.tenant(), id, $2 from book where tenant_id = app.tenant() and id = $1 and deleted_at is null for no key update
			on conflict (tenant_id, book_id) do update set updated_at = now(),
			  locks = array(select x from unnest(m.locks) x where not x = any($3::text[]) union select unnest($2::text[]))`, id, on, off)
	}
	db.One(&b, &row, `select coalesce((select m.locks from book_metadata m where m.tenant_id = app.tenant() and m.book_id = b.id), '{}') as locks, b.series_id, b.library_id
		from book b where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null`, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	if row == nil {
		return nil, nil, fault.Missing("Book")
	}
	out := Locks(LockSet(lockNames, row.Locks))
	if len(on)+len(off) == 0 {
		return &out, nil, nil
	}
	return &out, &events.Book{ID: id, SeriesID: row.SeriesID, LibraryID: row.LibraryID}, nil
}

// SplitLocks returns the names to lock and the names to unlock; unknown names are ignored.
func SplitLocks(names []string, changes map[string]*bool) (on, off []string) {
	on, off = []string{}, []string{}
	for _, name := range names {
		switch v := changes[name]; {
		case v == nil:
		case *v:
			on = append(on, name)
		default:
			off = append(off, name)
		}
	}
	return on, off
}

// orEmpty replaces a nil list, which pgx would write as null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
