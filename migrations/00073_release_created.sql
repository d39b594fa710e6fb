-- The releases of a tenant, of which so many are kept; those that are ignored go first.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists release_created;
create index concurrently release_created on release (tenant_id, created_at, id) include (source_id, state);

-- +goose Down
drop index concurrently if exists release_created;
