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

// Target is what a task is about, found by the statement that adds it: a query of at most one row with the columns
// library_id, series_id, book_id, and params, which are added to the task's.
type Target struct {
	kind string // what is missing where nothing is found
	key  string // what follows the DedupeKey
	sql  string
	args []any
}

// Found is what a query finds: see Target.
func Found(sql string, args ...any) Target { return Target{sql: sql, args: args} }

// OfBook is a book whose file is there.
func OfBook(id uuid.UUID) Target {
	return Target{"Book", id.String(), `select library_id, series_id, id as book_id, '{}'::jsonb as params from book
		where tenant_id = app.tenant() and id = $1 and deleted_at is null`, []any{id}}
}

// OfNewBook is one that was never analysed; of one that cannot be read it was tried.
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

// OfAll is everything that the tenant has.
func OfAll() Target { return Target{"", "all", Everything().sql, nil} }

// Everything is OfAll of a task whose DedupeKey says so itself.
func Everything() Target {
	return Target{"", "", "select null::uuid as library_id, null::uuid as series_id, null::uuid as book_id, '{}'::jsonb as params", nil}
}

// OfBooks are the books with these ids whose files are there, in the param bookIds; perhaps none.
func OfBooks(ids []uuid.UUID) Target {
	return ofSeveral("bookIds", "book where deleted_at is null and", ids)
}

// OfSeveralSeries are the series with these ids, in the param seriesIds; perhaps none.
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

// Start adds the task for a target, or finds the unfinished one with the same DedupeKey: one round trip; and tells
// added. NotFound where there is no such target.
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
