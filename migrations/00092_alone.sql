-- What the database as a whole says is told where nobody else is in it.

-- +goose Up
-- alone reports whether the database has no other tenant.
create function app.alone() returns boolean language sql stable security definer set search_path = pg_catalog, public
  as $$ select not exists (select from public.tenant t where t.id <> app.tenant()) $$;
revoke all on function app.alone() from public;
grant execute on function app.alone() to longbox_app, longbox_limited;

-- +goose Down
drop function app.alone();
