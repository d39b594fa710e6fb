package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Wake is the channel that notifies workers on the same database of a new task.
const Wake = "longbox_task"

// columns is the insert with the columns of a new task, in the order of the statements below.
const columns = "insert into task (tenant_id, id, type, priority, params, library_id, series_id, book_id, parent_id, dedupe_key, created_by, scheduled_for)"

// same matches the unfinished task with the same dedupe_key.
const same = " on conflict (tenant_id, dedupe_key) where dedupe_key is not null and status in ('pending', 'running')"

// PutOffSQL is a condition: task t is to start at a later time. Such a task does not count as one that works on its
// target.
const PutOffSQL = "(t.status = 'pending' and t.started_at is null and t.scheduled_for > now())"

// Add adds the insert of a task to the batch of the change that causes it. id receives its id, or the id of the
// unfinished task with the same DedupeKey. If s has force, so has that task then; and it counts as created by whoever
// asks now.
func Add(b *pgx.Batch, s Spec, id *uuid.UUID) error {
	return AddFor(b, s, Target{sql: "select $1::uuid as library_id, $2::uuid as series_id, $3::uuid as book_id, '{}'::jsonb as params",
		args: []any{s.LibraryID, s.SeriesID, s.BookID}}, id)
}

// AddFor is Add with library, series, book and further params from a target. If the target finds nothing, no task is
// added and id stays unchanged.
func AddFor(b *pgx.Batch, s Spec, t Target, id *uuid.UUID) error {
	sql, args, err := s.insertion(t)
	if err != nil {
		return err
	}
	db.Value(b, id, sql+same+` do update set priority = greatest(task.priority, excluded.priority), created_by = coalesce(excluded.created_by, task.created_by),
		params = case when excluded.params @> '{"force": true}' then task.params || '{"force": true}' else task.params end returning id`, args...)
	b.Queue("select pg_notify($1, '')", Wake)
	return nil
}

// AddNew is AddFor for tasks that many requests ask for: if the task exists already, it writes nothing and wakes
// nobody. n receives the number of added tasks.
func AddNew(b *pgx.Batch, s Spec, t Target, n *int64) error {
	sql, args, err := s.insertion(t)
	if err != nil {
		return err
	}
	db.Affected(b, n, "with added as ("+sql+same+" do nothing returning id) select pg_notify('"+Wake+"', '') from added", args...)
	return nil
}

// insertion returns the insert of the task for a target, without its conflict clause.
func (s *Spec) insertion(t Target) (sql string, args []any, err error) {
	params, err := s.params()
	if err != nil {
		return "", nil, err
	}
	fresh := s.ID
	if fresh == uuid.Nil {
		if fresh, err = uuid.NewV7(); err != nil {
			return "", nil, err
		}
	}
	dedupe := s.dedupe(t.key)
	n := len(t.args)
	return fmt.Sprintf(columns+` select app.tenant(), $%d::uuid, $%d::text, $%d::integer, $%d::jsonb || x.params,
		x.library_id, x.series_id, x.book_id, $%d::uuid, $%d::text, coalesce($%d::uuid, app.account()), coalesce($%d::timestamptz, now()) from (`+t.sql+`) x`,
		n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8), append(slices.Clone(t.args), fresh, s.Type, s.priority(), params, s.ParentID, dedupe, s.By, s.At), nil
}

// priority returns the task's own priority, by default its type's.
func (s *Spec) priority() int {
	if s.Priority != nil {
		return *s.Priority
	}
	return Priority(s.Type)
}

// dedupe returns the dedupe_key of the task for a target. A task for a later time has another key than one to run now.
func (s *Spec) dedupe(target string) *string {
	if s.DedupeKey == "" {
		return nil
	}
	key := s.DedupeKey + target
	if s.At != nil {
		key = fmt.Sprintf("%d@%s", s.At.Unix(), key)
	}
	return &key
}

// Lock locks the unfinished task with a DedupeKey, if there is one. A worker locks its task before what it works on. So
// must whoever may add the task and writes the same row: otherwise they block each other.
func Lock(ctx context.Context, tx pgx.Tx, dedupeKey string) error {
	_, err := tx.Exec(ctx, "select from task where tenant_id = app.tenant() and dedupe_key = $1 and status in ('pending', 'running') for no key update", dedupeKey)
	return err
}

// AddEach adds the insert of a task per row of a query to the batch. The query has the columns library_id, series_id,
// book_id, and params, which are added to the params of s. n receives the number of added tasks. DedupeKey is followed
// by the id of the book, else of the series; a row with an unfinished task gets no second one.
func AddEach(b *pgx.Batch, s Spec, n *int64, rows string, args ...any) error {
	params, err := s.params()
	if err != nil {
		return err
	}
	k := len(args)
	db.Affected(b, n, fmt.Sprintf(columns+` select app.tenant(), gen_random_uuid(), $%d::text, $%d::integer, $%d::jsonb || x.params,
		x.library_id, x.series_id, x.book_id, $%d::uuid, $%d::text || coalesce(x.book_id, x.series_id)::text, app.account(), coalesce($%d::timestamptz, now()) from (`+rows+`) x`+same+`
		do nothing`, k+1, k+2, k+3, k+4, k+5, k+6), append(slices.Clone(args), s.Type, s.priority(), params, s.ParentID, s.dedupe(""), s.At)...)
	b.Queue("select pg_notify($1, '')", Wake)
	return nil
}

// params returns the params of the task as a JSON object.
func (s *Spec) params() (json.RawMessage, error) {
	data, err := json.Marshal(s.Params)
	if err != nil {
		return nil, fmt.Errorf("task %s: params: %w", s.Type, err)
	}
	if string(data) == "null" {
		return json.RawMessage(`{}`), nil
	}
	return data, nil
}
