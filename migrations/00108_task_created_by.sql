-- The unfinished page packs of an account are counted before it gets another one.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists task_created_by;
create index concurrently task_created_by on task (tenant_id, created_by)
  where type = 'pack_book' and created_by is not null and status in ('pending', 'running');

-- +goose Down
drop index concurrently if exists task_created_by;
