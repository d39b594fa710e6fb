-- Scans whose end nobody has looked after: their last part was cancelled or given up, or the worker died that had ended them.

-- +goose Up
set local lock_timeout = '5s';
create index scan_unsettled on scan (tenant_id, id) where not settled;

-- unsettled_scans are those of all active tenants that ended p_after ago. It belongs to the owner, since no role sees scans of
-- all tenants; the scheduler, which calls it, enters each tenant for the rest.
-- +goose StatementBegin
create function app.unsettled_scans(p_after interval) returns table (tenant uuid, scan uuid) language sql stable security definer
  set search_path = pg_catalog, public as $$
  select s.tenant_id, s.id from public.scan s
    join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    join public.tenant o on o.id = s.tenant_id and o.status = 'active'
  where not s.settled and t.status in ('completed', 'failed') and t.completed_at < now() - p_after
  order by t.completed_at limit 100;
$$;
-- +goose StatementEnd
revoke execute on function app.unsettled_scans from public;
grant execute on function app.unsettled_scans to longbox_system;

-- +goose Down
drop function app.unsettled_scans;
drop index scan_unsettled;
