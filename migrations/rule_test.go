package migrations_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/testkit"
)

// Each query lists what breaks a rule of README.md.
var rules = []struct{ rule, offenders string }{
	{"row-level security is enabled", `select c.relname from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relrowsecurity and c.relname <> 'goose_db_version'`},
	{"every role has a policy for reading and writing", `select c.relname || ' for ' || r.rolname from pg_class c, pg_roles r
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'goose_db_version'
		and r.rolname in ('longbox_app', 'longbox_system', 'longbox_limited') and not exists (select from pg_policy p
			where p.polrelid = c.oid and p.polroles = array[r.oid] and p.polcmd = '*' and p.polqual is not null and p.polwithcheck is not null)`},
	{"longbox_app sees the entered tenant only", `select p.polrelid::regclass::text from pg_policy p
		where p.polroles = array['longbox_app'::regrole::oid] and pg_get_expr(p.polqual, p.polrelid) !~ '^\((tenant_id|id) = \( SELECT app.tenant\(\) AS tenant\)\)$'`},
	{"longbox_limited does not see what belongs to a series that is hidden", `select c.relname || '.' || a.attname from pg_class c
		join pg_attribute a on a.attrelid = c.oid and (a.attname in ('series_id', 'book_id') or c.relname = 'series' and a.attname = 'id')
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'series_sharing_tag' and not exists (select from pg_policy p
			where p.polrelid = c.oid and p.polroles = array['longbox_limited'::regrole::oid]
			and pg_get_expr(p.polqual, p.polrelid) ~ format('^\(\(tenant_id = .* = %s\.%s\)', c.relname, a.attname))`},
	{"tenant_id is first in the primary key", `select c.relname from pg_class c
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname not in ('goose_db_version', 'tenant')
		and not exists (select from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
			where i.indrelid = c.oid and i.indisprimary and a.attname = 'tenant_id')`},
	{"foreign keys contain tenant_id", `select k.conname from pg_constraint k
		where k.contype = 'f' and k.connamespace = 'public'::regnamespace and not exists (select from pg_attribute a
			where a.attrelid = k.conrelid and a.attnum = any(k.conkey) and a.attname = 'tenant_id')`},
	{"columns that look like secrets are marked as such", `select a.attrelid::regclass || '.' || a.attname from pg_attribute a
		join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
		where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
		and (t.typname = 'bytea' or t.typname in ('text', 'varchar', 'jsonb') and a.attname ~ '(password|secret|token|hash|credential|private|_key$)')
		and coalesce(col_description(c.oid, a.attnum), '') <> 'secret' and (c.relname, a.attname) not in (('external_id', 'metadata_hash'), ('task', 'dedupe_key'), ('series_cover', 'image'), ('book_cover', 'image'), ('plugin', 'credential_delivery'))`},
	{"security definer functions fix their search path and are not for everybody", `select f.oid::regprocedure::text from pg_proc f
		where f.pronamespace in ('app'::regnamespace, 'public'::regnamespace) and f.prosecdef
		and (not coalesce(f.proconfig::text like '%search_path=pg_catalog%', false) or f.proacl is null
			or exists (select from aclexplode(f.proacl) a where a.grantee = 0))`},
	{"longbox_limited may do what longbox_app may, and no more", `select coalesce(a.relname, l.relname) || ' ' || coalesce(a.privilege_type, l.privilege_type) from
		(select c.relname, x.privilege_type from pg_class c, aclexplode(c.relacl) x where x.grantee = 'longbox_app'::regrole) a full join
		(select c.relname, x.privilege_type from pg_class c, aclexplode(c.relacl) x where x.grantee = 'longbox_limited'::regrole) l using (relname, privilege_type)
		where a.relname is null or l.relname is null`},
	{"no role can escape row-level security", `select rolname from pg_roles
		where rolname in ('longbox_app', 'longbox_system', 'longbox_limited') and (rolsuper or rolbypassrls or rolcreaterole or pg_has_role(oid, 'longbox_owner', 'member'))`},
}

func TestRules(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	for _, r := range rules {
		for _, name := range offenders(t, d, r.offenders) {
			t.Errorf("%s: not so for %s", r.rule, name)
		}
	}
}

// A schema that breaks every rule is found out by every query.
func TestRulesFindOffenders(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	_, err := d.Owner.Pool().Exec(context.Background(), `
		create table bare (id uuid primary key, tenant uuid references tenant, api_token text);
		create table open (tenant_id uuid, id uuid, series_id uuid, primary key (tenant_id, id));
		alter table open enable row level security;
		create policy tenant on open to longbox_app using (true);
		grant select on open to longbox_limited;
		create function app.peek() returns bigint language sql security definer as 'select count(*) from public.tenant';`)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules[:len(rules)-1] { // The last is about roles, which all databases of a server share.
		if len(offenders(t, d, r.offenders)) == 0 {
			t.Errorf("%s: no offender found", r.rule)
		}
	}
}

func offenders(t *testing.T, d *testkit.Databases, sql string) []string {
	t.Helper()
	rows, err := d.Owner.Pool().Query(context.Background(), sql)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
	return names
}
