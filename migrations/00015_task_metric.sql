-- Figures of tasks that have ended, hour by hour.

-- +goose Up

-- A row is what became of the tasks of one type that ended within an hour. timed are those that had begun, and waited those
-- whose wait for a worker is known; the sums and bounds are of them. Of durations, element n counts tasks that took from
-- 2^((n-1)/4) to less than 2^(n/4) milliseconds, the first also shorter ones, the last all longer ones. items and bytes are
-- what the tasks themselves say they did, null where none says so.
-- It is searched over all tenants: the scheduler ends tasks of every tenant in one statement, and removes what is old.
create table task_metric (
  tenant_id     uuid not null references tenant on delete cascade,
  hour          timestamptz not null,
  type          text not null,
  succeeded     bigint not null,
  failed        bigint not null,
  retried       bigint not null, -- took more than one attempt
  timed         bigint not null,
  duration_ms   bigint not null,
  min_ms        bigint,
  max_ms        bigint,
  durations     integer[] not null check (cardinality(durations) = 96),
  waited        bigint not null,
  wait_ms       bigint not null,
  items         bigint,
  bytes         bigint,
  last_error    text,
  last_error_at timestamptz,
  primary key (tenant_id, hour, type)
) with (fillfactor = 50); -- a row is changed with every task that ends in its hour, in place where its page has room
call app.protect('task_metric', true);

-- task_metrics_since is the first hour whose figures the tenant's setting keeps; infinity where none are.
create function app.task_metrics_since(p_tenant uuid) returns timestamptz language sql stable as $$
  select case when k.days = 'disabled' then 'infinity' else date_trunc('hour', now(), 'UTC') - k.days::integer * interval '1 day' end
  from (select coalesce((select s.value from public.setting s where s.tenant_id = p_tenant and s.key = 'metrics.task_retention_days'), '30') as days) k
$$;

-- task_counted is the number that a task's result has under a name; null where it has none.
create function app.task_counted(p_result jsonb, p_name text) returns bigint language sql immutable as $$
  select case when jsonb_typeof(p_result -> p_name) = 'number' then (p_result ->> p_name)::numeric::bigint end
$$;

-- count_task counts a task that has ended. It runs at the commit of whatever ended it, when all tasks of that are locked,
-- and takes the tenant's turn first: so counting adds nothing to the order of locks.
-- +goose StatementBegin
create function app.count_task() returns trigger language plpgsql as $$
declare
  v_ended constant timestamptz := coalesce(new.completed_at, now());
  v_failed constant integer := (new.status = 'failed')::integer;
  v_timed constant integer := (new.started_at is not null)::integer;
  v_ms constant bigint := greatest(0, extract(epoch from v_ended - new.started_at) * 1000);
  -- Since a task that is tried again is due anew, only what the first claim found is a wait.
  v_waited constant integer := (new.scheduled_for <= new.started_at)::integer;
  v_wait constant bigint := extract(epoch from new.started_at - new.scheduled_for) * 1000;
  v_slot constant integer := case when v_timed = 1 then least(96, 1 + floor(4 * ln(greatest(v_ms, 1)) / ln(2))) else 1 end;
  v_durations integer[] := array_fill(0, array[96]);
begin
  if v_ended < app.task_metrics_since(new.tenant_id) then
    return null;
  end if;
  perform pg_advisory_xact_lock(7269, hashtext(new.tenant_id::text));
  v_durations[v_slot] := v_timed;
  insert into public.task_metric as m (tenant_id, hour, type, succeeded, failed, retried, timed, duration_ms, min_ms, max_ms, durations,
      waited, wait_ms, items, bytes, last_error, last_error_at)
    values (new.tenant_id, date_trunc('hour', v_ended, 'UTC'), new.type, 1 - v_failed, v_failed, (new.attempts > 1)::integer,
      v_timed, case when v_timed = 1 then v_ms else 0 end, case when v_timed = 1 then v_ms end, case when v_timed = 1 then v_ms end, v_durations,
      coalesce(v_waited, 0), case when v_waited = 1 then v_wait else 0 end,
      coalesce(app.task_counted(new.result, 'filesListed'), app.task_counted(new.result, 'booksAnalyzed'), app.task_counted(new.result, 'booksPurged'),
        app.task_counted(new.result, 'pages')),
      app.task_counted(new.result, 'bytes'),
      case when v_failed = 1 then left(new.last_error, 2000) end, case when v_failed = 1 then v_ended end)
    on conflict (tenant_id, hour, type) do update set
      succeeded = m.succeeded + excluded.succeeded,
      failed = m.failed + excluded.failed,
      retried = m.retried + excluded.retried,
      timed = m.timed + excluded.timed,
      duration_ms = m.duration_ms + excluded.duration_ms,
      min_ms = least(m.min_ms, excluded.min_ms),
      max_ms = greatest(m.max_ms, excluded.max_ms),
      durations[v_slot] = m.durations[v_slot] + v_timed,
      waited = m.waited + excluded.waited,
      wait_ms = m.wait_ms + excluded.wait_ms,
      items = coalesce(m.items + excluded.items, m.items, excluded.items),
      bytes = coalesce(m.bytes + excluded.bytes, m.bytes, excluded.bytes),
      last_error = case when excluded.failed = 1 then excluded.last_error else m.last_error end,
      last_error_at = coalesce(excluded.last_error_at, m.last_error_at);
  return null;
end $$;
-- +goose StatementEnd

-- Every way for a task to end passes here: no program can forget to count. A cancelled task came to no end of its own.
set local lock_timeout = '5s';
create constraint trigger task_metric after update of status on task deferrable initially deferred for each row
  when (old.status in ('pending', 'running') and new.status in ('completed', 'failed')) execute function app.count_task();

-- +goose Down
drop trigger task_metric on task;
drop function app.count_task, app.task_counted, app.task_metrics_since;
drop table task_metric;
