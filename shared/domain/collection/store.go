package collection

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// pageSQL is the end of the statement that lists them: $1 rows after $2.
const pageSQL = "order by c.name collate natural_order, c.id limit $1 offset $2"

func (k kind) list(ctx context.Context, d *db.DB, limit, offset int) ([]row, int64, error) {
	var b pgx.Batch
	var page []row
	var total int64
	db.All(&b, &page, k.listSQL(pageSQL), limit, offset)
	db.Value(&b, &total, "select count(*)"+mineOf+"'"+k.Name+"'")
	return page, total, d.Run(ctx, &b)
}

// having returns the manual lists that a series or book is a member of; NotFound if there is no such series or book.
func (k kind) having(ctx context.Context, d *db.DB, what string, id uuid.UUID) ([]row, error) {
	var b pgx.Batch
	var exists bool
	var page []row
	db.Value(&b, &exists, "select exists (select from "+k.Table+" x where x.tenant_id = app.tenant() and x.id = $1 and "+k.There+")", id)
	db.All(&b, &page, k.listSQL("and c.id in (select m.collection_id from collection_member m where m.tenant_id = app.tenant() and m."+
		k.Column+" = $1) order by c.name collate natural_order, c.id"), id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !exists {
		return nil, fault.Missing(what)
	}
	return page, nil
}

func (k kind) get(ctx context.Context, d *db.DB, id uuid.UUID) (*row, error) {
	var b pgx.Batch
	var r *row
	k.queueGet(&b, &r, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault.Missing(k.What)
	}
	return r, nil
}

func (k kind) taken(err error, name string) error {
	if db.Conflict(err, "collection_name") {
		return fault.Taken("name", "There is already a %s named %s", strings.ToLower(k.What), name)
	}
	return err
}

func (k kind) create(ctx context.Context, d *db.DB, p patch) (*row, error) {
	switch {
	case p.name == nil:
		return nil, errNoName
	case p.condition != nil && p.ordered != nil && *p.ordered:
		return nil, errOrdered
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	var out *row
	b.Queue("insert into collection (tenant_id, id, kind, name, summary, ordered, condition) values (app.tenant(), $1, $2, $3, $4, coalesce($5, false), $6)",
		id, k.Name, p.name, p.summary, p.ordered, p.condition)
	k.queueGet(&b, &out, id)
	return out, k.taken(d.Run(ctx, &b), *p.name)
}

// update changes a collection or read list. One that becomes automatic loses its chosen members (migration 00081).
// BadRequest if it would be both ordered and automatic.
func (k kind) update(ctx context.Context, d *db.DB, id uuid.UUID, p patch) (*row, error) {
	var b pgx.Batch
	var out *row
	var n int64
	db.Affected(&b, &n, `update collection set name = coalesce($3, name), summary = case when $4 then $5 else summary end, ordered = coalesce($6, ordered),
		  condition = case when $7 then $8::jsonb else condition end, updated_at = now() where tenant_id = app.tenant() and id = $1 and kind = $2
		  and not ((coalesce($6, false) or $7 and $8::jsonb is not null) and coalesce($6, ordered) and case when $7 then $8::jsonb else condition end is not null)`,
		id, k.Name, p.name, p.setSummary, p.summary, p.ordered, p.setCondition, p.condition)
	k.queueGet(&b, &out, id)
	if err := d.Run(ctx, &b); err != nil {
		if p.name != nil {
			err = k.taken(err, *p.name)
		}
		return nil, err
	}
	switch {
	case out == nil:
		return nil, fault.Missing(k.What)
	case n == 0:
		return nil, errOrdered
	}
	return out, nil
}

// hold locks a collection. Every writer of its members takes this lock first.
const hold = "select from collection where tenant_id = app.tenant() and id = $1 for no key update"

func (k kind) remove(ctx context.Context, d *db.DB, id uuid.UUID) error {
	n, err := db.Exec(ctx, d, "delete from collection where tenant_id = app.tenant() and kind = $2 and id = $1", id, k.Name)
	if err == nil && n == 0 {
		err = fault.Missing(k.What)
	}
	return err
}

// write runs a change of members under the lock. If it changes no row, updated_at stays. NotFound if there is no such
// collection, Conflict if it is automatic.
func (k kind) write(ctx context.Context, d *db.DB, id uuid.UUID, sql string, args ...any) (*row, error) {
	var b pgx.Batch
	var out *row
	b.Queue(hold, id)
	b.Queue("with changed as ("+sql+` returning 1)
		update collection set updated_at = now() where tenant_id = app.tenant() and id = $1 and exists (select from changed)`, append([]any{id}, args...)...)
	k.queueGet(&b, &out, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case out == nil:
		return nil, fault.Missing(k.What)
	case out.Condition != nil:
		return nil, fault.New(fault.Conflict, "The collection is automatic: its members are the series that meet its condition")
	}
	return out, nil
}

// chosen is an SQL condition: collection $1 is of this kind and its members are chosen.
func (k kind) chosen() string {
	return "exists (select from collection c where c.tenant_id = app.tenant() and c.id = $1 and c.kind = '" + k.Name + "' and c.condition is null)"
}

// add appends the given members; unknown ids are ignored.
func (k kind) add(ctx context.Context, d *db.DB, id uuid.UUID, ids []uuid.UUID) (*row, error) {
	return k.write(ctx, d, id, `insert into collection_member (tenant_id, id, collection_id, `+k.Column+`, place, added_at)
		select app.tenant(), gen_random_uuid(), $1, x.id, array_position($2::uuid[], x.id) + (select app.last_place($1)), statement_timestamp() + array_position($2::uuid[], x.id) * interval '1 microsecond'
		from `+k.Table+` x where x.tenant_id = app.tenant() and x.id = any($2) and `+k.There+` and `+k.chosen()+` order by x.id on conflict do nothing`, ids)
}

// drop removes a member, if it is one.
func (k kind) drop(ctx context.Context, d *db.DB, id, member uuid.UUID) error {
	_, err := k.write(ctx, d, id, "delete from collection_member where tenant_id = app.tenant() and collection_id = $1 and "+k.Column+" = $2 and "+k.chosen(), member)
	return err
}

// order puts the members in ids first and the others after them in their old order, using the places that they hold
// together. Members that the caller cannot see, and books whose file is gone, keep their places. If two have the same
// place, the later one moves on.
func (k kind) order(ctx context.Context, d *db.DB, id uuid.UUID, ids []uuid.UUID) error {
	_, err := k.write(ctx, d, id, `with member as materialized (
		  select x.id, x.place, row_number() over (order by x.place, x.id) as was, row_number() over (order by u.nth nulls last, x.place, x.id) as n
		  from (select m.id, m.place, x.id as member`+k.from()+`) x
		  left join (select member, min(nth) as nth from unnest($2::uuid[]) with ordinality as u(member, nth) group by member) u using (member))
		update collection_member w set place = p.place from member m
		  join (select was, was + max(place - was) over (order by was) as place from member) p on p.was = m.n
		where w.tenant_id = app.tenant() and w.id = m.id and w.place <> p.place and `+k.chosen(), ids)
	return err
}
