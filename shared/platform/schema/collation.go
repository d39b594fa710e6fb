package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// staleIndexes are those whose text is ordered by a collation of another version than this server has. ICU comes with
// the system, and its order with it: after an upgrade of the system, or when a cluster moves to another one, searches in
// such an index go astray and lists miss rows, without an error.
const staleIndexes = `
	select i.indexrelid::regclass::text from pg_index i
	where exists (select from pg_collation c
	  where c.oid = any(i.indcollation) and c.collversion <> pg_collation_actual_version(c.oid))
	order by 1`

// staleCollations are the collations of Longbox that are not of this server's version.
const staleCollations = `
	select oid::regcollation::text from pg_collation
	where collnamespace = 'public'::regnamespace and collversion <> pg_collation_actual_version(oid)`

// refreshCollations makes the indexes anew that another version of a collation has ordered, all or none of them, and
// says how many there were. Writers wait for it: some seconds for a hundred thousand books.
func refreshCollations(ctx context.Context, conn *sql.DB) (indexes int, err error) {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	stale, err := names(ctx, tx, staleIndexes)
	if err != nil {
		return 0, err
	}
	for _, index := range stale {
		if _, err := tx.ExecContext(ctx, "reindex index "+index); err != nil {
			return 0, fmt.Errorf("index %s: %w", index, err)
		}
	}
	collations, err := names(ctx, tx, staleCollations)
	if err != nil {
		return 0, err
	}
	for _, c := range collations {
		if _, err := tx.ExecContext(ctx, "alter collation "+c+" refresh version"); err != nil {
			return 0, fmt.Errorf("collation %s: %w", c, err)
		}
	}
	return len(stale), tx.Commit()
}

// names reads a column of names that are quoted where they must be.
func names(ctx context.Context, tx *sql.Tx, query string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query)
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
