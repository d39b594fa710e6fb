package db_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// collect reads the rows of a query outside any tenant.
func collect[T any](t *testing.T, d *db.DB, sql string, args ...any) []T {
	t.Helper()
	rows, err := d.Pool().Query(context.Background(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type role struct {
	Name                        string
	Super, Bypass, Create, Repl bool
}

// A superuser, or a role that bypasses row security, sees everything: then these tests would prove nothing.
func refuseSuperuser(t *testing.T, d *db.DB) {
	t.Helper()
	for _, r := range collect[role](t, d, `select rolname::text, rolsuper, rolbypassrls, rolcreaterole or rolcreatedb, rolreplication
		from pg_roles where rolname = current_user`) {
		if r.Super || r.Bypass {
			t.Fatalf("the test connects as %s, whom row security does not bind: use the app role", r.Name)
		}
	}
}

func TestRolesAreBound(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	refuseSuperuser(t, d.App)
	refuseSuperuser(t, d.System)
	const bound = " in ('longbox_app', 'longbox_system', 'longbox_limited')"
	roles := collect[role](t, d.App, `select rolname::text, rolsuper, rolbypassrls, rolcreaterole or rolcreatedb, rolreplication
		from pg_roles where rolname`+bound)
	if len(roles) != 3 {
		t.Fatalf("roles: %+v", roles)
	}
	for _, r := range roles {
		if r.Super || r.Bypass || r.Create || r.Repl {
			t.Errorf("%s may too much: %+v", r.Name, r)
		}
	}
	type owned struct{ Kind, Name, Owner string }
	for _, o := range collect[owned](t, d.App, `
		select 'relation', c.oid::regclass::text, pg_get_userbyid(c.relowner)::text from pg_class c where pg_get_userbyid(c.relowner)`+bound+`
		union all select 'function', p.oid::regprocedure::text, pg_get_userbyid(p.proowner)::text from pg_proc p where pg_get_userbyid(p.proowner)`+bound+`
		union all select 'schema', n.nspname::text, pg_get_userbyid(n.nspowner)::text from pg_namespace n where pg_get_userbyid(n.nspowner)`+bound+`
		union all select 'database', d.datname::text, pg_get_userbyid(d.datdba)::text from pg_database d where pg_get_userbyid(d.datdba)`+bound+`
		union all select 'member of', g.rolname::text, m.rolname::text from pg_auth_members a join pg_roles g on g.oid = a.roleid join pg_roles m on m.oid = a.member
		  where m.rolname`+bound+` and g.rolname <> 'longbox_may_limit'`) {
		t.Errorf("%s has the %s %s", o.Owner, o.Kind, o.Name)
	}
	for _, d := range []*db.DB{d.App, d.System} {
		for _, sql := range []string{"create table public.mine (id integer)", "create schema mine", "alter table book disable row level security",
			"set role longbox_owner", "set session authorization longbox_owner", "drop policy tenant on book", "truncate book"} {
			if _, err := d.Pool().Exec(context.Background(), sql); err == nil {
				t.Errorf("a restricted role may: %s", sql)
			}
		}
	}
}

// systemWide are the tables in which longbox_system sees all tenants' rows, to find due work.
var systemWide = map[string]bool{"tenant": true, "refresh_token": true, "verification_token": true, "setting": true, "setting_schedule": true, "plugin_schedule": true, "library_job": true,
	"library": true, "task": true, "task_metric": true, "page_pack": true, "cover_sweep": true, "oidc_state": true, "term_fill": true, "alternate_title_fill": true, "release_fill": true, "export_cleanup": true, "release_source": true, "upload": true, "scan": true}

func TestEveryTenantTableIsProtected(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	refuseSuperuser(t, d.App)
	type table struct {
		Name   string
		RLS    bool
		Column string // of the tenant; "" where there is none
	}
	tables := collect[table](t, d.App, `select c.relname::text, c.relrowsecurity, coalesce((select a.attname::text from pg_attribute a
		  where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped), '')
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p') and n.nspname in ('public', 'app')`)
	type policy struct {
		Table, Role, Using, Check, Command string
		Permissive                         bool
	}
	policies := map[string][]policy{}
	for _, p := range collect[policy](t, d.App, `select c.relname::text, coalesce(r.rolname::text, 'public'), coalesce(pg_get_expr(p.polqual, p.polrelid), ''),
		coalesce(pg_get_expr(p.polwithcheck, p.polrelid), ''), p.polcmd::text, p.polpermissive
		from pg_policy p join pg_class c on c.oid = p.polrelid left join lateral unnest(p.polroles) u(oid) on true left join pg_roles r on r.oid = u.oid`) {
		policies[p.Table] = append(policies[p.Table], p)
	}
	found := 0
	for _, c := range tables {
		column := c.Column
		switch {
		case c.Name == "tenant":
			column = "id"
		case strings.HasPrefix(c.Name, "goose_"):
			continue // the migrations' own, which only the owner reads
		case column == "":
			t.Errorf("%s has no tenant_id: whose are its rows?", c.Name)
			continue
		}
		found++
		if !c.RLS {
			t.Errorf("%s: row security is off", c.Name)
		}
		own := "(" + column + " = ( SELECT app.tenant() AS tenant))"
		want := map[string]string{"longbox_app": own, "longbox_system": own, "longbox_limited": own}
		if systemWide[c.Name] {
			want["longbox_system"] = "true"
		}
		if len(policies[c.Name]) != len(want) {
			t.Errorf("%s has %d policies: %+v", c.Name, len(policies[c.Name]), policies[c.Name])
		}
		for _, p := range policies[c.Name] {
			if p.Role == "longbox_limited" && strings.HasPrefix(p.Using, "("+own+" AND ") { // and by its sharing tags
				p.Using = own
			}
			if w := want[p.Role]; w == "" || p.Using != w || p.Check != w || p.Command != "*" || !p.Permissive {
				t.Errorf("%s: policy for %s: using %s, with check %s, command %s; want %s", c.Name, p.Role, p.Using, p.Check, p.Command, w)
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d tables of tenants were found", found)
	}
	type view struct{ Name string }
	for _, v := range collect[view](t, d.App, `select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('v', 'm') and n.nspname in ('public', 'app') and not coalesce('security_invoker=true' = any(c.reloptions), false)`) {
		t.Errorf("the view %s reads with its owner's rights", v.Name)
	}
	type function struct{ Name, Config string }
	for _, f := range collect[function](t, d.App, `select p.oid::regprocedure::text, coalesce(array_to_string(p.proconfig, ','), '') from pg_proc p
		join pg_namespace n on n.oid = p.pronamespace where n.nspname in ('public', 'app') and p.prosecdef`) {
		if !strings.Contains(f.Config, "search_path=") {
			t.Errorf("%s runs with its owner's rights but does not fix search_path", f.Name)
		}
	}
	type foreign struct{ Name, Table string }
	for _, k := range collect[foreign](t, d.App, `select k.conname::text, k.conrelid::regclass::text from pg_constraint k
		where k.contype in ('f', 'p', 'u') and exists (select from pg_attribute a where a.attrelid = k.conrelid and a.attname = 'tenant_id')
		  and not exists (select from pg_attribute a where a.attrelid = k.conrelid and a.attname = 'tenant_id' and a.attnum = any(k.conkey))`) {
		t.Errorf("the key %s of %s goes across tenants", k.Name, k.Table)
	}
}

// fill puts a row of the tenant into every table, whatever rows have to be like: what is checked of them goes.
func fill(t *testing.T, d *testkit.Databases, tenant uuid.UUID) {
	t.Helper()
	d.Exec(t, `do $$ declare r record; begin
		for r in select conrelid::regclass as name, conname from pg_constraint where contype in ('c', 'f') and connamespace = 'public'::regnamespace and conparentid = 0 loop
		  execute format('alter table %s drop constraint %I', r.name, r.conname);
		end loop;
		for r in select a.attrelid::regclass as name, string_agg(quote_ident(a.attname), ', ') as columns,
		    string_agg(case when a.attname = 'tenant_id' then quote_literal('`+tenant.String()+`')
		      when a.atttypid = 'uuid'::regtype then 'gen_random_uuid()'
		      when a.atttypid in ('timestamptz'::regtype, 'date'::regtype) then 'now()'
		      when y.typcategory = 'A' or a.atttypid = 'jsonb'::regtype then quote_literal('{}')
		      when y.typcategory = 'N' then '0' when y.typcategory = 'B' then 'false' else quote_literal('x') end, ', ') as given
		    from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_type y on y.oid = a.atttypid
		    where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and a.attnum > 0 and a.attnotnull and not a.atthasdef and a.attidentity = ''
		      and exists (select from pg_attribute o where o.attrelid = a.attrelid and o.attname = 'tenant_id') group by 1 loop
		  execute format('alter table %s disable trigger user', r.name);
		  execute format('insert into %s (%s) values (%s)', r.name, r.columns, r.given);
		end loop;
	end $$`)
}

func TestNoTenantNoRows(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	refuseSuperuser(t, d.App)
	one := d.Tenant(t, "one")
	ctx := context.Background()
	fill(t, d, one)
	type name struct{ Name string }
	tables := collect[name](t, d.App, `select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
		join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and n.nspname = 'public' union select 'tenant'`)
	for _, table := range tables {
		var n int
		if err := d.Owner.Pool().QueryRow(ctx, "select count(*) from "+table.Name).Scan(&n); err != nil || n == 0 {
			t.Errorf("%s holds %d rows, which proves nothing: %v", table.Name, n, err)
		}
	}
	conn, err := d.App.Pool().Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	// Never set, and set once in a transaction of before (then the setting reads '').
	for _, before := range []string{"select 1", "select app.use_tenant('" + one.String() + "')"} {
		if _, err := conn.Exec(ctx, before); err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			var n int
			if err := conn.QueryRow(ctx, "select count(*) from "+table.Name).Scan(&n); err != nil || n != 0 {
				t.Errorf("after %s, %s without a tenant: %d rows, %v", before, table.Name, n, err)
			}
		}
		for _, sql := range []string{"insert into library_root (tenant_id, path, bucket) values ('" + one.String() + "', '/y', 'y')",
			"insert into tag (tenant_id, id, name) values ('" + one.String() + "', '" + uuid.NewString() + "', 'x')"} {
			if _, err := conn.Exec(ctx, sql); err == nil || !strings.Contains(err.Error(), "row-level security policy") {
				t.Errorf("after %s, an insert without a tenant: %v", before, err)
			}
		}
		for _, sql := range []string{"update library_root set bucket = 'z'", "delete from library_root"} {
			if tag, err := conn.Exec(ctx, sql); err != nil || tag.RowsAffected() != 0 {
				t.Errorf("after %s, %s without a tenant: %v, %v", before, sql, tag, err)
			}
		}
	}
}
