-- The trigrams of the titles, by tenant (see app.find). A scan writes them into a list that is short enough to be read whole (in KB).

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists series_find;
create index concurrently series_find on series using gin (tenant_id, search_title gin_trgm_ops) with (gin_pending_list_limit = 512);
drop index if exists book_find;
create index concurrently book_find on book using gin (tenant_id, search_title gin_trgm_ops) with (gin_pending_list_limit = 512);

-- +goose Down
drop index series_find, book_find;
