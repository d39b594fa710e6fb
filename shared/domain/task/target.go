package task

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Target is what a task works on. It is found by the statement that adds the task: a query for at most one row with the
// columns library_id, series_id, book_id, and params, which are added to the task's params.
type Target struct {
	kind string // name in the 404 message
	key  string // suffix of the DedupeKey
	sql  string
	args []any
}

// Found is the target that a query finds: see Target.
func Found(sql string, args ...any) Target { return Target{sql: sql, args: args} }

// OfBook is a book whose file is there.
func OfBook(id uuid.UUID) Target {
	return Target{"Book", id.String(), `select library_id, series_id, id as book_id, '{}'::jsonb as params from book
		where tenant_id = app.tenant() and id = $1 and deleted_at is null`, []any{id}}
}

// OfNewBook is a book that was never analysed; a failed analysis counts as analysed.
func OfNewBook(id uuid.UUID) Target {
	t := OfBook(id)
	t.sql += " and not analyzed and error_type is null"
	return t
}

// OfSeries is a series.
func OfSeries(id uuid.UUID) Target {
	return Target{"Series", id.String(), `select library_id, id as series_id, null::uuid as book_id, '{}'::jsonb as params from series
		where tenant_id = app.tenant() and id = $1`, []any{id}}
}

// OfLibrary is a library.
func OfLibrary(id uuid.UUID) Target {
	return Target{"Library", id.String(), `select id as library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params from library
		where tenant_id = app.tenant() and id = $1`, []any{id}}
}

// OfAll is everything in the tenant.
func OfAll() Target { return Target{"", "all", Everything().sql, nil} }

// Everything is OfAll for a task whose DedupeKey is complete by itself.
func Everything() Target {
	return Target{"", "", "select null::uuid as library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params", nil}
}

// OfBooks are the given books whose files are there, possibly none, in the param bookIds.
func OfBooks(ids []uuid.UUID) Target {
	return ofSeveral("bookIds", "book where deleted_at is null and", ids)
}

// OfSeveralSeries are the given series that exist, possibly none, in the param seriesIds.
func OfSeveralSeries(ids []uuid.UUID) Target { return ofSeveral("seriesIds", "series where", ids) }

func ofSeveral(param, from string, ids []uuid.UUID) Target {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids)
	sum := sha256.New()
	for _, id := range ids {
		sum.Write(id[:])
	}
	return Target{"", param + ":" + hex.EncodeToString(sum.Sum(nil)), `select null::uuid as library_id, null::uuid as series_id, null::uuid as book_id,
		jsonb_build_object('` + param + `', coalesce(jsonb_agg(id order by id), '[]')) as params from ` + from + ` tenant_id = app.tenant() and id = any($1)`, []any{ids}}
}

// Start adds the task for a target, or finds the unfinished one with the same DedupeKey, in one round trip; then it
// calls added. NotFound if there is no such target.
func Start(ctx context.Context, d *db.DB, added Added, s Spec, t Target, message string) (*Started, error) {
	var b pgx.Batch
	out := Started{Message: message}
	if err := AddFor(&b, s, t, &out.TaskID); err != nil {
		return nil, err
	}
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if out.TaskID == uuid.Nil {
		return nil, fault.Missing(t.kind)
	}
	added.Tell(ctx, httpapi.TenantOf(ctx).ID)
	return &out, nil
}
