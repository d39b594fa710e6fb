package task

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Wake is the channel that tells workers on the same database that a task was added.
const Wake = "longbox_task"

// columns are those that whoever adds tasks fills, in the order of the statements below.
const columns = "insert into task (tenant_id, id, type, priority, params, library_id, series_id, book_id, parent_id, dedupe_key, created_by, scheduled_for)"

// same is the unfinished task with the same dedupe_key.
const same = " on conflict (tenant_id, dedupe_key) where dedupe_key is not null and status in ('pending', 'running')"

// PutOff is SQL that tells of a task t whether it is to begin at a later time: what it is about is as free as if it
// were not there.
const PutOff = "(t.status = 'pending' and t.started_at is null and t.scheduled_for > now())"

// Add queues the insertion of a task into the batch that causes it; id receives its id, or that of the
// unfinished task with the same DedupeKey.
func Add(b *pgx.Batch, s Spec, id *uuid.UUID) error {
	return AddFor(b, s, Target{sql: "select $1::uuid as library_id, $2::uuid as series_id, $3::uuid as book_id, '{}'::jsonb as params",
		args: []any{s.LibraryID, s.SeriesID, s.BookID}}, id)
}

// AddFor is Add for what a target finds, which fills library, series and book, and adds to the params. Where it finds
// nothing nothing is added, and id stays as it is.
func AddFor(b *pgx.Batch, s Spec, t Target, id *uuid.UUID) error {
	sql, args, err := s.insertion(t)
	if err != nil {
		return err
	}
	db.Value(b, id, sql+same+" do update set priority = greatest(task.priority, excluded.priority) returning id", args...)
	b.Queue("select pg_notify($1, '')", Wake)
	return nil
}

// AddNew is AddFor for what is asked for at every request: where nothing is added nothing is written, and nobody is
// woken; n receives how many were.
func AddNew(b *pgx.Batch, s Spec, t Target, n *int64) error {
	sql, args, err := s.insertion(t)
	if err != nil {
		return err
	}
	db.Affected(b, n, "with added as ("+sql+same+" do nothing returning id) select pg_notify('"+Wake+"', '') from added", args...)
	return nil
}

// insertion is the statement that adds the task for a target, up to what it does about the same one.
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
		x.library_id, x.series_id, x.book_id, $%d::uuid, $%d::text, app.account(), coalesce($%d::timestamptz, now()) from (`+t.sql+`) x`, n+1, n+2, n+3, n+4, n+5, n+6, n+7),
		append(slices.Clone(t.args), fresh, s.Type, s.priority(), params, s.ParentID, dedupe, s.At), nil
}

// priority is how urgent the task is: as others of its type, unless somebody says otherwise.
func (s *Spec) priority() int {
	if s.Priority != nil {
		return *s.Priority
	}
	return priorities[s.Type]
}

// dedupe is the dedupe_key of the task for a target. One that is to run at a time is another than one that is to run
// now.
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

// AddEach queues the insertion of a task for each row of a query with the columns library_id, series_id, book_id and
// params, which are added to those of s; n receives how many. A DedupeKey is followed by the id of the book, else of
// the series; of what is unfinished already there is no second task.
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

// params are those of the task as a JSON object.
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
