-- What people write of a series that goes is not lost: who writes before it is locked is waited for, and that is handed
-- on; who writes later is refused.

-- +goose Up
-- As 00087 has it; the series are locked before what is written of them is handed on.
-- +goose StatementBegin
create or replace function app.drop_empty_series(p_series uuid[]) returns setof uuid language plpgsql as $$
declare
  v_empty uuid[];
  v_held uuid[];
begin
  if coalesce((select value from public.setting where tenant_id = app.tenant() and key = 'purge.purge_empty_series'), 'true') <> 'true' then
    return;
  end if;
  v_empty := array(select s.id from public.series s where s.tenant_id = app.tenant() and s.id = any(p_series) and s.book_count = 0
    and not exists (select from public.book b where b.tenant_id = app.tenant() and b.series_id = s.id));
  v_held := app.heirs_held(v_empty);
  v_empty := array(select u from unnest(v_empty) u where u <> all(v_held));
  perform from public.series s where s.tenant_id = app.tenant() and s.id = any(v_empty) order by s.id for update;
  perform app.hand_left(v_empty);
  update public.series s set heir = h.heir from app.heirs_of(v_empty) h -- of those that go later; whoever writes to them is not waited for
    where s.tenant_id = app.tenant() and h.id = s.heir and s.id = any(array(select o.id from public.series o
      where o.tenant_id = app.tenant() and o.heir = any(v_empty) and o.id <> all(v_empty) for update skip locked));
  return query delete from public.series s where s.tenant_id = app.tenant() and s.id = any(v_empty) returning s.id;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The function goes on.
select 1;
