-- How tasks end.

-- +goose Up

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
    update public.task t set
      open_children = t.open_children - 1,
      status = case when t.done and t.open_children = 1 and t.status = 'running' then 'completed' else t.status end,
      completed_at = case when t.done and t.open_children = 1 and t.status = 'running' then now() else t.completed_at end
    where t.tenant_id = p_tenant and t.id = v_parent
    returning t.id, t.status into id, status;
    if found then
      return next;
    end if;
  end if;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function app.finish_task;
