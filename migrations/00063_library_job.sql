-- What is done to a library by a schedule: plugins are asked for the current metadata of what is in it.

-- +goose Up
set local lock_timeout = '5s'; -- the foreign key locks the table of libraries
-- next_run_at is when the schedule is due in next_zone, null while that is to be found out. task_id is the last run, whose
-- end last_run_status tells; while that says pending or running, the task's own state counts.
create table library_job (
  tenant_id        uuid not null,
  id               uuid not null,
  library_id       uuid not null,
  name             text not null check (length(name) between 1 and 200),
  enabled          boolean not null,
  cron_schedule    text not null check (length(cron_schedule) between 1 and 200),
  timezone         text check (length(timezone) <= 100), -- null: the setting scheduler.timezone
  config           jsonb not null check (length(config::text) <= 20000),
  next_run_at      timestamptz,
  next_zone        text,
  task_id          uuid,
  last_run_at      timestamptz,
  last_run_status  text check (last_run_status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  last_run_message text,
  created_at       timestamptz not null default now(),
  updated_at       timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, library_id) references library on delete cascade
);
create index library_job_library on library_job (tenant_id, library_id, created_at, id);
create index library_job_open on library_job (tenant_id, task_id) where last_run_status in ('pending', 'running');
call app.protect('library_job', true); -- the scheduler looks through all tenants for what is due

-- +goose Down
drop table library_job;
