-- No program calls adopt_moved any more (follow_content took its place in 00008), and hold_task asked twice whether the
-- tenant is active.

-- +goose Up
drop function app.adopt_moved(uuid, uuid, uuid[], uuid[]);

-- +goose StatementBegin
create or replace function app.hold_task(p_tenant uuid, p_task uuid, p_epoch integer) returns void language plpgsql as $$
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  perform from public.task t
    where t.tenant_id = p_tenant and t.id = p_task and t.lease_epoch = p_epoch and t.status = 'running'
      and (t.parent_id is null or not exists (
        select from public.task p where p.tenant_id = p_tenant and p.id = t.parent_id and p.status = 'cancelled'))
      and exists (select from public.tenant o where o.id = p_tenant and o.status = 'active')
    for share of t;
  if not found then
    raise exception 'task % is no longer held', p_task using errcode = 'LB410';
  end if;
end $$;
-- +goose StatementEnd

-- +goose Down
-- adopt_moved comes back by its name only, so that 00002 can drop it: the program before this migration does not call it.
-- hold_task stays: what it does is the same.
-- +goose StatementBegin
create function app.adopt_moved(p_library uuid, p_scan uuid, p_gone uuid[], p_came uuid[])
returns table (id uuid, was uuid, series_id uuid, came_series uuid, left_series uuid, left_gone boolean) language plpgsql as $$
begin
  raise exception 'app.adopt_moved is no longer there; app.follow_content took its place';
end $$;
-- +goose StatementEnd
