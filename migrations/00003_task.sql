-- How tasks are claimed, sent and ended.

-- +goose Up

-- may_scan tells whether one more scan of the tenant may run. Who asks holds the tenant's turn until commit, so
-- that two claims cannot both take the last place; while another has the turn the answer is no.
-- +goose StatementBegin
create function app.may_scan(p_tenant uuid, p_max integer) returns boolean language plpgsql as $$
begin
  return p_max is null or (pg_try_advisory_xact_lock(7267, hashtext(p_tenant::text))
    and p_max > (select count(*) from public.task k where k.tenant_id = p_tenant and k.status = 'running' and k.type = 'scan_library'));
end $$;
-- +goose StatementEnd

-- waiting_tenants are the active tenants with pending tasks: one look into the index for each, however many tasks.
-- +goose StatementBegin
create function app.waiting_tenants() returns table (id uuid, max_scans integer) language sql stable as $$
  with recursive w(id) as (
    (select k.tenant_id from public.task k where k.status = 'pending' order by k.tenant_id limit 1)
    union all
    select (select k.tenant_id from public.task k where k.status = 'pending' and k.tenant_id > w.id order by k.tenant_id limit 1)
    from w where w.id is not null)
  select t.id, t.max_scans from w join public.tenant t on t.id = w.id where t.status = 'active';
$$;
-- +goose StatementEnd

-- claim_task takes the most urgent due task of the active tenant for which the fewest tasks run, so that a tenant
-- with 100,000 pending tasks has no more of the workers than one with ten. While the statistics do not know of new
-- tasks yet, the planner would read and sort them all: without sorting it follows task_claim.
-- +goose StatementBegin
create function app.claim_task(p_worker text, p_lease interval) returns setof public.task language plpgsql
  set enable_sort = off set jit = off as $$
declare
  v_tenant record;
  v_scan boolean;
  v_task uuid;
begin
  for v_tenant in
    select w.id, w.max_scans from app.waiting_tenants() w
    cross join lateral (select count(*) as n from public.task k where k.tenant_id = w.id and k.status = 'running' and not k.done) r
    order by r.n, random()
  loop
    v_scan := app.may_scan(v_tenant.id, v_tenant.max_scans);
    select k.id into v_task from public.task k
      where k.tenant_id = v_tenant.id and k.status = 'pending' and k.scheduled_for <= now() and (v_scan or k.type <> 'scan_library')
      order by k.priority desc, k.scheduled_for, k.id limit 1 for update skip locked;
    if found then
      return query update public.task k set status = 'running', locked_by = p_worker, lease_until = now() + p_lease, queued_at = null,
          lease_epoch = k.lease_epoch + 1, attempts = k.attempts + 1, started_at = coalesce(k.started_at, now())
        where k.tenant_id = v_tenant.id and k.id = v_task returning k.*;
      return;
    end if;
  end loop;
end $$;
-- +goose StatementEnd

-- claim_named takes the task that a message names and says 'claimed'; otherwise why not: 'unknown' (no tenant has
-- it: a forged message or a deleted task), 'ended', 'held' (by another worker), 'waiting' (not due, its tenant not
-- active, or too many scans: another message will be sent). A task whose worker has died is taken over.
-- +goose StatementBegin
create function app.claim_named(p_tenant uuid, p_task uuid, p_worker text, p_lease interval) returns text language plpgsql as $$
declare
  v_task public.task;
  v_tenant public.tenant;
begin
  select * into v_task from public.task k where k.tenant_id = p_tenant and k.id = p_task for update;
  if not found then
    return 'unknown';
  end if;
  if v_task.status = 'running' and (v_task.done or v_task.lease_until > now() or v_task.attempts >= v_task.max_attempts) then
    return 'held';
  elsif v_task.status not in ('pending', 'running') then
    return 'ended';
  end if;
  select * into v_tenant from public.tenant t where t.id = p_tenant;
  if v_task.status = 'pending' and (v_task.scheduled_for > now() or v_tenant.status <> 'active'
      or v_task.type = 'scan_library' and not app.may_scan(p_tenant, v_tenant.max_scans)) then
    update public.task k set queued_at = null where k.tenant_id = p_tenant and k.id = p_task;
    return 'waiting';
  end if;
  update public.task k set status = 'running', locked_by = p_worker, lease_until = now() + p_lease, queued_at = null,
      lease_epoch = k.lease_epoch + 1, attempts = k.attempts + 1, deaths = k.deaths + (v_task.status = 'running')::integer,
      started_at = coalesce(k.started_at, now())
    where k.tenant_id = p_tenant and k.id = p_task;
  return 'claimed';
end $$;
-- +goose StatementEnd

-- next_to_send marks the tasks of the entered tenant whose messages are to be sent now, the most urgent first: so
-- many that p_window of its tasks are out, sent or running, and no more scans than the tenant may have. What was
-- sent longer than p_resend ago and not claimed was lost, and is sent again.
-- +goose StatementBegin
create function app.next_to_send(p_window integer, p_resend interval) returns setof uuid language plpgsql
  set enable_sort = off set jit = off as $$
declare
  v_tenant constant uuid := app.tenant();
  v_max integer;
  v_room bigint;
  v_scans bigint;
  v_task record;
begin
  select coalesce(t.max_scans, 2147483647) into v_max from public.tenant t where t.id = v_tenant and t.status = 'active';
  if not found then
    return;
  end if;
  perform pg_advisory_xact_lock(7268, hashtext(v_tenant::text)); -- two that count at once would send twice as many
  update public.task k set queued_at = null where k.tenant_id = v_tenant and k.status = 'pending' and k.queued_at < now() - p_resend;
  select p_window - count(*) filter (where not k.done), count(*) filter (where k.type = 'scan_library') into v_room, v_scans
    from public.task k where k.tenant_id = v_tenant and k.status = 'running';
  select v_room - count(*), v_scans + count(*) filter (where k.type = 'scan_library') into v_room, v_scans
    from public.task k where k.tenant_id = v_tenant and k.status = 'pending' and k.queued_at is not null;
  for v_task in
    select k.id, k.type from public.task k
    where k.tenant_id = v_tenant and k.status = 'pending' and k.queued_at is null and k.scheduled_for <= now()
      and (v_scans < v_max or k.type <> 'scan_library')
    order by k.priority desc, k.scheduled_for, k.id limit greatest(v_room, 0) for update skip locked
  loop
    if v_task.type = 'scan_library' then
      continue when v_scans >= v_max;
      v_scans := v_scans + 1;
    end if;
    update public.task k set queued_at = now() where k.tenant_id = v_tenant and k.id = v_task.id;
    return next v_task.id;
  end loop;
end $$;
-- +goose StatementEnd

-- end_child tells a parent that a child has ended, and what it is now; no row when there is none.
-- +goose StatementBegin
create function app.end_child(p_tenant uuid, p_parent uuid) returns table (id uuid, status text) language sql as $$
  update public.task t set
    open_children = t.open_children - 1,
    status = case when t.done and t.open_children = 1 and t.status = 'running' then 'completed' else t.status end,
    completed_at = case when t.done and t.open_children = 1 and t.status = 'running' then now() else t.completed_at end
  where t.tenant_id = p_tenant and t.id = p_parent
  returning t.id, t.status;
$$;
-- +goose StatementEnd

-- fail_task ends a task that nobody works on, with its reason, as finish_task does; no row when it has ended or a
-- worker has it.
-- +goose StatementBegin
create function app.fail_task(p_tenant uuid, p_task uuid, p_reason text) returns table (id uuid, status text) language plpgsql as $$
declare
  v_parent uuid;
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  update public.task t set status = 'failed', completed_at = now(), lease_until = null, locked_by = null, queued_at = null,
      last_error = p_reason || coalesce(': ' || t.last_error, '')
    where t.tenant_id = p_tenant and t.id = p_task
      and (t.status = 'pending' or t.status = 'running' and not t.done and t.lease_until < now())
    returning t.parent_id into v_parent;
  if found then
    return query select p_task, 'failed';
    return query select * from app.end_child(p_tenant, v_parent);
  end if;
end $$;
-- +goose StatementEnd

-- finish_task ends a task that the worker still holds under p_epoch: completed, or waiting for its children
-- (done, still running); or with p_error back to pending after p_retry, or failed when no attempt is left or
-- p_retry is null. It tells the task's and its parent's state; no row when the lease was lost.
-- +goose StatementBegin
create function app.finish_task(p_tenant uuid, p_task uuid, p_epoch integer, p_result jsonb, p_error text, p_retry interval)
returns table (id uuid, status text) language plpgsql as $$
declare
  v_parent uuid;
  v_status text;
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  update public.task t set
    done = p_error is null,
    result = coalesce(p_result, t.result),
    last_error = coalesce(p_error, t.last_error),
    lease_until = null,
    locked_by = null,
    scheduled_for = case when p_error is null then t.scheduled_for else now() + coalesce(p_retry, interval '0') end,
    status = case
      when p_error is null then case when t.open_children = 0 then 'completed' else 'running' end
      when p_retry is not null and t.attempts < t.max_attempts then 'pending'
      else 'failed' end,
    completed_at = case
      when p_error is null and t.open_children = 0 then now()
      when p_error is not null and (p_retry is null or t.attempts >= t.max_attempts) then now() end
  where t.tenant_id = p_tenant and t.id = p_task and t.lease_epoch = p_epoch and t.status = 'running' and not t.done
  returning t.parent_id, t.status into v_parent, v_status;
  if not found then
    return;
  end if;
  id := p_task;
  status := v_status;
  return next;
  if v_parent is not null and v_status in ('completed', 'failed') then
    return query select * from app.end_child(p_tenant, v_parent);
  end if;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function app.finish_task, app.fail_task, app.end_child, app.next_to_send, app.claim_named, app.claim_task, app.waiting_tenants, app.may_scan;
