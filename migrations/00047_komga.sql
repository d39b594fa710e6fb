-- The Komga-compatible interface lies below a path prefix that each tenant chooses in its settings. A request is told
-- from others by it before anybody is known, together with the tenant itself.

-- +goose Up

-- komga_prefix is the prefix of the tenant of a host name; null where the interface is off.
create function app.komga_prefix(p_host text) returns text
  language sql stable security definer set search_path = pg_catalog, public as $$
  select nullif(s.value, '') from app.tenant_by_host(p_host) t
    join public.setting s on s.tenant_id = t.id and s.key = 'komga_api.prefix' $$;
revoke execute on function app.komga_prefix(text) from public;
grant execute on function app.komga_prefix(text) to longbox_app, longbox_system;

-- +goose Down
drop function app.komga_prefix(text);
