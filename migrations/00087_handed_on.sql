-- What people have chosen and written of a series that goes reaches one that stays, however many go and in whatever
-- order, and no two transactions wait for each other for it.

-- +goose Up
-- heirs_of is, for series that go, the nearest heir that stays, and how far that is.
-- +goose StatementBegin
create or replace function app.heirs_of(p_series uuid[]) returns table (id uuid, heir uuid, library_id uuid, distance integer)
language sql stable as $$
  with recursive going as materialized (
    select s.id, s.heir from public.series s where s.tenant_id = app.tenant() and s.id = any(p_series) and s.heir is not null),
  follows as ( -- backwards from those that stay: what goes round is in no row
    select g.id, n.id as heir, n.library_id, 1 as distance from going g
      join public.series n on n.tenant_id = app.tenant() and n.id = g.heir where n.id not in (select unnest(p_series))
    union all
    select g.id, f.heir, f.library_id, f.distance + 1 from follows f join going g on g.heir = f.id)
  select f.id, f.heir, f.library_id, f.distance from follows f
$$;
-- +goose StatementEnd

-- As 00085 has it; heirs are those that stay. What is nearer to one of these comes first.
-- +goose StatementBegin
create or replace function app.hand_left(p_series uuid[]) returns void language plpgsql as $$
declare
  v_pair record;
begin
  for v_pair in
    select s.id, n.id as heir, s.created_at <= n.created_at as older from app.heirs_of(p_series) h
      join public.series s on s.tenant_id = app.tenant() and s.id = h.id
      join public.series n on n.tenant_id = s.tenant_id and n.id = h.heir order by h.distance, s.path, s.id
  loop
    perform app.hand_series(v_pair.id, v_pair.heir);
    perform app.hand_releases(v_pair.id, v_pair.heir);
    perform app.hand_written(v_pair.id, v_pair.heir, v_pair.older);
    perform set_config('app.heirs', concat_ws(' ', nullif(current_setting('app.heirs', true), ''), v_pair.heir), true);
  end loop;
end $$;
-- +goose StatementEnd

-- hand_library gives what people have chosen and written of the next p_count series of a library that is to go to their
-- heirs in others, and tells whether there may be more. Who has inherited from them within the library is next.
-- +goose StatementBegin
create or replace function app.hand_library(p_library uuid, p_count integer) returns boolean language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_some uuid[] := array(select s.id from public.series s join public.series n on n.tenant_id = s.tenant_id and n.id = s.heir
    where s.tenant_id = v_tenant and s.library_id = p_library and s.heir is not null and n.library_id <> p_library order by s.id limit p_count);
begin
  if v_some = '{}' then
    return false;
  end if;
  perform app.hand_left(v_some);
  update public.series s set heir = n.heir from public.series n
    where s.tenant_id = v_tenant and s.library_id = p_library and n.tenant_id = v_tenant and n.id = s.heir and n.id = any(v_some);
  update public.series s set heir = null where s.tenant_id = v_tenant and s.id = any(v_some);
  return true;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The functions go on.
select 1;
