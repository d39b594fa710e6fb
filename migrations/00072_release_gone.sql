-- Sources of releases that have gone, and whose turn it is among the runs of jobs that ask a plugin.

-- +goose Up
set local lock_timeout = '5s'; -- plugin is locked

-- plugin_id is null of a source that has gone: what it has announced is deleted step by step, and at last the source.
alter table release_source alter column plugin_id drop not null;
create index release_source_gone on release_source (tenant_id, id) where plugin_id is null;

-- job_task is the run that asks the plugin; it has its turn until the task has ended, also while that is paused or waits.
alter table plugin add column job_task uuid;

-- The scheduler looks for what is due among the jobs of all tenants.
create index library_job_due on library_job (next_run_at) where enabled;

-- +goose Down
drop index library_job_due;
alter table plugin drop column job_task;
drop index release_source_gone;
delete from release_source where plugin_id is null;
alter table release_source alter column plugin_id set not null;
