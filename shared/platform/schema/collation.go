package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// staleCollations selects Longbox's collations whose version differs from the server's. ICU, and with it the sort
// order, comes with the system. After an upgrade of the system, or a move of the cluster to another one, index searches
// fail and lists miss rows, without an error.
const staleCollations = `
	select oid::regcollation::text from pg_collation
	where collnamespace = 'public'::regnamespace and collversion <> pg_collation_actual_version(oid)`

// orderedBy selects the indexes that use a collation.
const orderedBy = "select indexrelid::regclass::text from pg_index where $1::regcollation = any(indcollation) order by 1"

// refreshCollations rebuilds the indexes with an outdated collation, all or none, and returns their number. Writers
// wait meanwhile: about a second with a hundred thousand books.
func refreshCollations(ctx context.Context, conn *sql.DB) (indexes int, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	collations, err := names(ctx, tx, staleCollations)
	if err != nil {
		return 0, err
	}
	for _, c := range collations {
		ordered, err := names(ctx, tx, orderedBy, c)
		if err != nil {
			return 0, err
		}
		for _, index := range ordered {
			if _, err := tx.ExecContext(ctx, "reindex index "+index); err != nil {
				return 0, fmt.Errorf("index %s: %w", index, err)
			}
		}
		if _, err := tx.ExecContext(ctx, "alter collation "+c+" refresh version"); err != nil {
			return 0, fmt.Errorf("collation %s: %w", c, err)
		}
		indexes += len(ordered)
	}
	return indexes, tx.Commit()
}

// names reads a column of names, quoted where necessary.
func names(ctx context.Context, tx *sql.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		out = append(out, name)
	}
	return out, rows.Err()
}
