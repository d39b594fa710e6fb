package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/upload"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Delete names the tenant to delete, twice.
type Delete struct {
	Name    string `json:"name"`
	Confirm string `json:"confirm" arg:"confirm" help:"the tenant's name again: a deletion cannot be undone"`
}

// Deletion reports what was deleted, over all calls. Left is what a check of every table, the bucket and Redis still
// found; Done says that it found nothing and the tenant's own row is deleted.
type Deletion struct {
	Name      string           `json:"name"`
	ID        string           `json:"id"`
	Done      bool             `json:"done"`
	Rows      map[string]int64 `json:"rows"`
	Objects   int64            `json:"objects"`
	Bytes     int64            `json:"bytes"`
	RedisKeys int64            `json:"redisKeys"`
	Left      map[string]int64 `json:"left,omitempty"`
	Message   string           `json:"message,omitempty"`
}

// Batch sizes of the deletion, so that no statement takes long.
const (
	rowBatch = 2000
	passes   = 5 // triggers may write counters again while books are deleted
)

// delete deletes a tenant: it blocks the tenant, aborts its open uploads, then deletes its rows table by table, its
// objects, its keys in Redis, and finally its own row. It may be interrupted and called again at any point: each step
// records its progress.
func (o *Operator) delete(ctx context.Context, i Delete) (any, error) {
	t, err := o.find(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	if i.Confirm != i.Name {
		return nil, fault.Invalid("confirm", "must repeat the tenant's name, %s: a deletion cannot be undone", i.Name)
	}
	if t.Status != deleting {
		if _, err := o.turn(ctx, t, deleting); err != nil {
			return nil, err
		}
		o.announce(ctx, t)
		if t, err = o.find(ctx, i.Name); err != nil {
			return nil, err
		}
	}
	if err := o.settled(ctx, t.StatusAt); err != nil {
		return nil, err
	}
	tables, err := o.tables(ctx)
	if err != nil {
		return nil, err
	}
	uploads := func(ctx context.Context, t *row) (bool, error) {
		return upload.Abandon(in(ctx, t), o.System, o.Library, nil)
	}
	rows := func(ctx context.Context, t *row) (bool, error) { return o.deleteRows(ctx, t, tables) }
	for _, step := range []func(context.Context, *row) (bool, error){uploads, rows, o.deleteObjects, o.deleteKeys} {
		done, err := step(ctx, t)
		if err != nil {
			return nil, err
		}
		if !done {
			return o.deletion(ctx, t, nil, "The time of this invocation is up; call delete again")
		}
	}
	left, err := o.left(ctx, t, tables)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return o.deletion(ctx, t, left, "Data was added during the deletion; call delete again")
	}
	d, err := o.deletion(ctx, t, nil, "")
	if err != nil {
		return nil, err
	}
	n, err := db.Exec(in(ctx, t), o.System, "delete from tenant where id = app.tenant() and status = 'deleting'")
	if err != nil {
		return nil, err
	}
	d.Rows["tenant"], d.Done = n, true
	return d, nil
}

// deletion returns the current report.
func (o *Operator) deletion(ctx context.Context, t *row, left map[string]int64, message string) (*Deletion, error) {
	d := &Deletion{Rows: map[string]int64{}}
	var b pgx.Batch
	b.Queue("select coalesce(deletion, '{}') from tenant where id = app.tenant()").QueryRow(func(r pgx.Row) error { return r.Scan(d) })
	switch err := o.System.Run(in(ctx, t), &b); {
	case errors.Is(err, pgx.ErrNoRows): // a concurrent call has finished
		return nil, noTenant(t.Name)
	case err != nil:
		return nil, err
	}
	d.Name, d.ID, d.Left, d.Message = t.Name, t.ID.String(), left, message
	return d, nil
}

// note is SQL that adds $n to a number in the report.
const note = "jsonb_set(coalesce(deletion, '{}'), $1, to_jsonb(coalesce((deletion #>> $1)::bigint, 0) + %s))"

// count adds to a number in the report.
func count(b *pgx.Batch, key string, n int64) {
	b.Queue("update tenant set deletion = "+fmt.Sprintf(note, "$2::bigint")+" where id = app.tenant()", []string{key}, n)
}

// deleteRows empties the tables in batches, referencing tables first.
func (o *Operator) deleteRows(ctx context.Context, t *row, tables []string) (bool, error) {
	if _, err := db.Exec(in(ctx, t), o.System, `update tenant set deletion = jsonb_set(coalesce(deletion, '{}'), '{rows}', coalesce(deletion -> 'rows', '{}'))
		where id = app.tenant()`); err != nil {
		return false, err
	}
	for range passes {
		removed := int64(0)
		for _, table := range tables {
			for {
				if late(ctx) {
					return false, nil
				}
				n, err := o.deleteBatch(ctx, t, table)
				if err != nil {
					return false, err
				}
				removed += n
				if n < rowBatch {
					break
				}
			}
		}
		if removed == 0 {
			break
		}
	}
	return true, nil
}

func (o *Operator) deleteBatch(ctx context.Context, t *row, table string) (int64, error) {
	name := pgx.Identifier{table}.Sanitize()
	n, err := db.GetValue[int64](in(ctx, t), o.System, `with gone as (
		  delete from `+name+` where tenant_id = app.tenant() and ctid = any(array(select ctid from `+name+` where tenant_id = app.tenant() limit $2)) returning 1),
		n as (select count(*) as n from gone)
		update tenant set deletion = `+fmt.Sprintf(note, "n.n")+` from n where id = app.tenant() and n.n > 0 returning n.n`,
		[]string{"rows", table}, rowBatch)
	if err != nil {
		return 0, fmt.Errorf("delete from %s: %w", table, err)
	}
	if n > 0 {
		slog.Info("rows of a tenant deleted", "tenant", t.Name, "tenantId", t.ID, "table", table, "rows", n)
	}
	return n, nil
}

// deleteObjects deletes the tenant's objects in the media bucket. Libraries are in other buckets, which are never
// touched.
func (o *Operator) deleteObjects(ctx context.Context, t *row) (bool, error) {
	return o.clear(ctx, blob.Prefixes(t.ID), time.Time{}, func(d blob.Deleted) error {
		var b pgx.Batch
		count(&b, "objects", d.Objects)
		count(&b, "bytes", d.Bytes)
		return o.System.Run(in(ctx, t), &b)
	})
}

// clear deletes the objects below prefixes that were stored before a time (zero: all). It calls add with the counts of
// each request. done is false if the time is up or the store refused something.
func (o *Operator) clear(ctx context.Context, prefixes []string, before time.Time, add func(blob.Deleted) error) (done bool, err error) {
	var failures error
	for _, prefix := range prefixes {
		for part, err := range o.Media.DeletePages(ctx, o.Bucket, prefix, before) {
			if err != nil { // the last item of this prefix
				failures = errors.Join(failures, err)
				break
			}
			if err := add(part); err != nil {
				return false, err
			}
			if late(ctx) {
				return false, failures
			}
		}
	}
	return failures == nil, failures
}

// deleteKeys deletes streams, limits, misses and the access generation from Redis.
func (o *Operator) deleteKeys(ctx context.Context, t *row) (bool, error) {
	removed := int64(0)
	err := o.eachKeys(ctx, t, func(keys []string) error {
		n, err := o.Redis.Unlink(ctx, keys...).Result()
		removed += n
		return err
	})
	if err != nil {
		return false, fmt.Errorf("delete keys in Redis: %w", err)
	}
	var b pgx.Batch
	count(&b, "redisKeys", removed)
	return true, o.System.Run(in(ctx, t), &b)
}

func (o *Operator) eachKeys(ctx context.Context, t *row, do func([]string) error) error {
	var cursor uint64
	for {
		keys, next, err := o.Redis.Scan(ctx, cursor, "lb:{"+t.ID.String()+"}:*", 1000).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := do(keys); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// left counts the remaining data of a tenant by table, and in bucket and Redis; empty if there is none.
func (o *Operator) left(ctx context.Context, t *row, tables []string) (map[string]int64, error) {
	counts := make([]int64, len(tables))
	var b pgx.Batch
	for i, table := range tables {
		db.Value(&b, &counts[i], "select count(*) from "+pgx.Identifier{table}.Sanitize()+" where tenant_id = app.tenant()")
	}
	if err := o.System.Run(in(ctx, t), &b); err != nil {
		return nil, err
	}
	left := map[string]int64{}
	for i, table := range tables {
		left[table] = counts[i]
	}
	for _, prefix := range blob.Prefixes(t.ID) {
		for page, err := range o.Media.List(ctx, o.Bucket, prefix, "") {
			if err != nil {
				return nil, err
			}
			left["objects in the media bucket"] += int64(len(page))
		}
	}
	err := o.eachKeys(ctx, t, func(keys []string) error { left["keys in Redis"] += int64(len(keys)); return nil })
	maps.DeleteFunc(left, func(_ string, n int64) bool { return n == 0 })
	return left, err
}
