-- The trigrams of the titles, by tenant (see app.find). A scan writes a book twice, when it finds the file and when it
-- has read it: only then are its trigrams worth an entry. Until then, and where a file cannot be read, there are few
-- enough of them in a tenant. New entries go into a list that is short enough to be read whole (in KB).

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists series_find;
create index concurrently series_find on series using gin (tenant_id, search_title gin_trgm_ops) with (gin_pending_list_limit = 512);
drop index if exists book_find;
create index concurrently book_find on book using gin (tenant_id, search_title gin_trgm_ops) with (gin_pending_list_limit = 512) where analyzed;
drop index if exists book_not_analyzed;
create index concurrently book_not_analyzed on book (tenant_id) where not analyzed;

-- +goose Down
drop index series_find, book_find, book_not_analyzed;
