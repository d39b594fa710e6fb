-- The children that are not ended are few beside all tasks: the scheduler looks for those of cancelled parents every
-- few seconds.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists task_open_child;
create index concurrently task_open_child on task (tenant_id, parent_id) where parent_id is not null and status in ('pending', 'running');

-- +goose Down
drop index concurrently if exists task_open_child;
