package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// tables returns the tables with tenant_id from the catalogue of the database; referencing tables come before
// referenced ones.
func (o *Operator) tables(ctx context.Context) ([]string, error) {
	names, err := column(ctx, o, `select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		and a.attname = 'tenant_id' and not a.attisdropped order by c.relname`)
	if err != nil {
		return nil, err
	}
	rows, err := o.System.Pool().Query(ctx, `select f.relname::text, t.relname::text from pg_constraint k
		join pg_class f on f.oid = k.conrelid join pg_class t on t.oid = k.confrelid
		where k.contype = 'f' and k.connamespace = 'public'::regnamespace and f.oid <> t.oid`)
	if err != nil {
		return nil, fmt.Errorf("read the database's catalogue: %w", err)
	}
	pointedAt := map[string][]string{} // by referencing tables
	var from, to string
	if _, err := pgx.ForEachRow(rows, []any{&from, &to}, func() error {
		pointedAt[to] = append(pointedAt[to], from)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read the database's catalogue: %w", err)
	}
	var out []string
	var visit func(name string, path []string)
	visit = func(name string, path []string) {
		if slices.Contains(out, name) || slices.Contains(path, name) { // breaks a cycle of keys: passes repeat
			return
		}
		for _, child := range pointedAt[name] {
			visit(child, append(path, name))
		}
		out = append(out, name)
	}
	for _, name := range names {
		visit(name, nil)
	}
	return slices.DeleteFunc(out, func(name string) bool { return !slices.Contains(names, name) }), nil
}

func column(ctx context.Context, o *Operator, sql string, args ...any) ([]string, error) {
	rows, err := o.System.Pool().Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read the database's catalogue: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the database's catalogue: %w", err)
	}
	return out, nil
}
