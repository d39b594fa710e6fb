package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// tables returns the tables with tenant_id from the catalogue of the database; referencing tables come before
// referenced ones.
func (o *Operator) tables(ctx context.Context) ([]string, error) {
	var b pgx.Batch
	var names []string
	var keys []struct {
		From string `db:"from"`
		To   string `db:"to"`
	}
	db.Values(&b, &names, `select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
		and a.attname = 'tenant_id' and not a.attisdropped order by c.relname`)
	db.All(&b, &keys, `select f.relname::text as "from", t.relname::text as "to" from pg_constraint k
		join pg_class f on f.oid = k.conrelid join pg_class t on t.oid = k.confrelid
		where k.contype = 'f' and k.connamespace = 'public'::regnamespace and f.oid <> t.oid`)
	if err := o.System.Run(nobody(ctx), &b); err != nil {
		return nil, fmt.Errorf("read the database's catalogue: %w", err)
	}
	pointedAt := map[string][]string{} // by referencing tables
	for _, k := range keys {
		pointedAt[k.To] = append(pointedAt[k.To], k.From)
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
