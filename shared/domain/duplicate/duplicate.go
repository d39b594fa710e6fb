package duplicate

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Group is a group of books with the same content.
type Group struct {
	ID             uuid.UUID   `json:"id" db:"id"`
	FileHash       string      `json:"fileHash" db:"fingerprint" doc:"Fingerprint of the content that the books share"`
	BookIDs        []uuid.UUID `json:"bookIds" db:"books" nullable:"false"`
	DuplicateCount int         `json:"duplicateCount" db:"count" doc:"Number of books"`
	CreatedAt      time.Time   `json:"createdAt" db:"created_at"`
	UpdatedAt      time.Time   `json:"updatedAt" db:"updated_at"`
}

// Totals counts all groups.
type Totals struct {
	TotalGroups         int64 `json:"totalGroups" db:"total_groups"`
	TotalDuplicateBooks int64 `json:"totalDuplicateBooks" db:"total_books" doc:"Number of books in all groups"`
}

// GroupPage is a page of groups, with the counts of all.
type GroupPage struct {
	httpapi.Page[Group]
	Totals
}

// shown joins the groups with their current books, without groups that were dismissed with exactly these. Users who do
// not see every series see only some of these. The index on fingerprints excludes empty ones, and is used only if the
// query does so explicitly.
const shown = ` from duplicate g cross join lateral (
	  select array_agg(b.id order by b.id) as books from book b
	  where b.tenant_id = app.tenant() and b.fingerprint = g.fingerprint and b.fingerprint <> '' and b.deleted_at is null) m
	where g.tenant_id = app.tenant() and cardinality(m.books) > 1
	  and not coalesce(m.books = g.dismissed or app.limited() and m.books <@ g.dismissed, false)`

// list returns a page of the groups, oldest first, and the totals in one round trip.
func list(ctx context.Context, d *db.DB, limit, offset int) ([]Group, *Totals, error) {
	var b pgx.Batch
	var groups []Group
	var totals *Totals
	db.All(&b, &groups, "select g.id, g.fingerprint, m.books, cardinality(m.books) as count, g.created_at, g.updated_at"+shown+
		" order by g.created_at, g.id limit $1 offset $2", limit, offset)
	db.One(&b, &totals, "select count(*) as total_groups, coalesce(sum(cardinality(m.books)), 0)::bigint as total_books"+shown)
	err := d.Run(ctx, &b)
	return groups, totals, err
}

// dismiss hides a group until its members change.
func dismiss(ctx context.Context, d *db.DB, id uuid.UUID) error {
	n, err := db.Exec(ctx, d, `update duplicate k set dismissed = f.books, updated_at = now()
		from (select g.id, m.books`+shown+` and g.id = $1) f where k.tenant_id = app.tenant() and k.id = f.id`, id)
	if err == nil && n == 0 {
		err = fault.Missing("Group of duplicates")
	}
	return err
}

// queue adds the task that finds the groups; id receives its id, which is fresh unless one is unfinished.
func queue(b *pgx.Batch, fresh uuid.UUID, id *uuid.UUID) error {
	return task.Add(b, task.Spec{ID: fresh, Type: task.FindDuplicates, DedupeKey: task.FindDuplicates}, id)
}

// start queues the task that finds the groups.
func start(ctx context.Context, d *db.DB) (*task.Started, error) {
	var b pgx.Batch
	var id uuid.UUID
	fresh := uuid.Must(uuid.NewV7())
	if err := queue(&b, fresh, &id); err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if id != fresh {
		return nil, fault.New(fault.Conflict, "A search for duplicates is already pending or running; wait for task %s", id)
	}
	return &task.Started{TaskID: id, Message: "The search for duplicates is queued"}, nil
}

// Result is the result of the task.
type Result struct {
	Found   int64 `json:"groupsFound"`   // new ones
	Removed int64 `json:"groupsRemoved"` // with fewer than two books left
	// The same for groups of series.
	SeriesFound   int64 `json:"seriesGroupsFound"`
	SeriesRemoved int64 `json:"seriesGroupsRemoved"`
}

// Finder finds duplicates.
type Finder struct{ Database *db.DB }

// Find handles find_duplicates tasks. A group is kept while it has two books or series; a dismissed one, while it has
// one.
func (f *Finder) Find(ctx context.Context, _ task.Held) (any, error) {
	var b pgx.Batch
	var out Result
	db.Affected(&b, &out.Removed, `delete from duplicate g where g.tenant_id = app.tenant() and (
		select count(*) from (select from book b where b.tenant_id = app.tenant() and b.fingerprint = g.fingerprint and b.fingerprint <> '' and b.deleted_at is null limit 2) x
		) < case when g.dismissed is null then 2 else 1 end`)
	db.Affected(&b, &out.Found, `insert into duplicate (tenant_id, id, fingerprint)
		select app.tenant(), gen_random_uuid(), fingerprint from book
		where tenant_id = app.tenant() and fingerprint <> '' and deleted_at is null group by fingerprint having count(*) > 1
		on conflict (tenant_id, fingerprint) do nothing`)
	queueSeries(&b, &out)
	return out, f.Database.Run(ctx, &b)
}
