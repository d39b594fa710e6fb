-- The scans that run are counted after the tenant's turn was taken. In one statement with that they were counted as they had stood
-- before another's claim, which ended just then: a tenant could have one scan more than its limit.

-- +goose Up
-- +goose StatementBegin
create or replace function app.may_scan(p_tenant uuid, p_max integer) returns boolean language plpgsql as $$
begin
  if p_max is null then
    return true;
  end if;
  if not pg_try_advisory_xact_lock(7267, hashtext(p_tenant::text)) then
    return false;
  end if;
  return p_max > (select count(*) from public.task k where k.tenant_id = p_tenant and k.status = 'running' and k.type = 'scan_library');
end $$;
-- +goose StatementEnd

-- +goose Down
-- What is replaced here does all that it did before, and goes with 00003.
select 1;
