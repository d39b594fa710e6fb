-- Books are also sorted by the names of their files and by when they came out. Nothing searches alternate_title_find now.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists book_name;
create index concurrently book_name on book (tenant_id, key, id) where deleted_at is null;
drop index concurrently if exists book_metadata_release;
create index concurrently book_metadata_release on book_metadata (tenant_id, app.release_day(metadata), book_id) where app.release_day(metadata) is not null;
drop index concurrently if exists alternate_title_find;

-- +goose Down
drop index concurrently if exists alternate_title_find;
create index concurrently alternate_title_find on alternate_title using gin (tenant_id, app.search_form(title) gin_trgm_ops) with (gin_pending_list_limit = 512);
drop index concurrently if exists book_metadata_release;
drop index concurrently if exists book_name;
