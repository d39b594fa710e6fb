-- The groups of duplicates in the order of their list.

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists duplicate_created;
create index concurrently duplicate_created on duplicate (tenant_id, created_at, id);

-- +goose Down
drop index duplicate_created;
