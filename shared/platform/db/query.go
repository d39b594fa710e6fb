package db

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// All queues a query whose rows become dst, by column name (the `db` tags of T).
func All[T any](b *pgx.Batch, dst *[]T, sql string, args ...any) {
	list(b, dst, byName[T](), sql, args)
}

// Values queues a query of one column whose values become dst.
func Values[T any](b *pgx.Batch, dst *[]T, sql string, args ...any) {
	list(b, dst, pgx.RowTo[T], sql, args)
}

// One queues a query for at most one row, which fills dst by column name. Without a row dst stays nil.
func One[T any](b *pgx.Batch, dst **T, sql string, args ...any) {
	single(b, dst, pgx.RowToAddrOfStructByName[T], sql, args)
}

// Value queues a query of one row and column that fills dst. Without a row dst is unchanged.
func Value[T any](b *pgx.Batch, dst *T, sql string, args ...any) {
	single(b, dst, pgx.RowTo[T], sql, args)
}

func list[T any](b *pgx.Batch, dst *[]T, scan pgx.RowToFunc[T], sql string, args []any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		got, err := pgx.CollectRows(rows, scan)
		if err != nil {
			return err
		}
		*dst = got
		return nil
	})
}

func single[T any](b *pgx.Batch, dst *T, scan pgx.RowToFunc[T], sql string, args []any) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		got, err := pgx.CollectExactlyOneRow(rows, scan)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		*dst = got
		return nil
	})
}

// byName is pgx.RowToStructByName for one query, but matches columns to fields only once, and scans all rows into the
// same value.
func byName[T any]() pgx.RowToFunc[T] {
	into := new(T)
	var targets []any // the fields of into, in the order of the columns
	return func(row pgx.CollectableRow) (T, error) {
		if targets == nil {
			targets = fields(into, row.FieldDescriptions())
			return pgx.RowToStructByName[T](row) // its error says what does not fit
		}
		if slices.Contains(targets, nil) { // a name that only pgx can match
			return pgx.RowToStructByName[T](row)
		}
		var empty T
		*into = empty
		err := row.Scan(targets...)
		return *into, err
	}
}

// fields returns pointers to the struct fields for the columns, or nil where no field has the column's name.
func fields(into any, columns []pgconn.FieldDescription) []any {
	v := reflect.ValueOf(into).Elem()
	targets := make([]any, len(columns))
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, tagged := f.Tag.Lookup("db")
		for i, c := range columns {
			if c.Name == name || !tagged && strings.EqualFold(c.Name, f.Name) {
				targets[i] = v.FieldByIndex(f.Index).Addr().Interface()
			}
		}
	}
	return targets
}

// Affected queues a statement and sets n to the number of changed rows.
func Affected(b *pgx.Batch, n *int64, sql string, args ...any) {
	b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		*n = tag.RowsAffected()
		return nil
	})
}

// Get runs one query in its own round trip and returns its row, or nil.
func Get[T any](ctx context.Context, d *DB, sql string, args ...any) (*T, error) {
	var b pgx.Batch
	var out *T
	One(&b, &out, sql, args...)
	return out, d.Run(ctx, &b)
}

// List runs one query in its own round trip and returns its rows.
func List[T any](ctx context.Context, d *DB, sql string, args ...any) ([]T, error) {
	var b pgx.Batch
	out := []T{}
	All(&b, &out, sql, args...)
	return out, d.Run(ctx, &b)
}

// GetValue runs one query of one row and column in its own round trip and returns its value, or the zero value without
// a row.
func GetValue[T any](ctx context.Context, d *DB, sql string, args ...any) (T, error) {
	var b pgx.Batch
	var out T
	Value(&b, &out, sql, args...)
	return out, d.Run(ctx, &b)
}

// ListValues runs one query of one column in its own round trip and returns its values.
func ListValues[T any](ctx context.Context, d *DB, sql string, args ...any) ([]T, error) {
	var b pgx.Batch
	out := []T{}
	Values(&b, &out, sql, args...)
	return out, d.Run(ctx, &b)
}

// Exec runs one statement in its own round trip and returns the number of changed rows.
func Exec(ctx context.Context, d *DB, sql string, args ...any) (int64, error) {
	var b pgx.Batch
	var n int64
	Affected(&b, &n, sql, args...)
	return n, d.Run(ctx, &b)
}
