-- Titles by how they begin: a search that finds more titles than it lists takes the best from here (00099). A whole title
-- may be too long for an index. And the genres
-- and tags, of which there may be many, in the order of their lists.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists series_begin;
create index concurrently series_begin on series (tenant_id, left(search_title, 600) text_pattern_ops);
drop index concurrently if exists book_begin;
create index concurrently book_begin on book (tenant_id, left(search_title, 600) text_pattern_ops);
drop index concurrently if exists genre_order;
create index concurrently genre_order on genre (tenant_id, name collate natural_order, id);
drop index concurrently if exists tag_order;
create index concurrently tag_order on tag (tenant_id, name collate natural_order, id);

-- +goose Down
drop index concurrently if exists series_begin;
drop index concurrently if exists book_begin;
drop index concurrently if exists genre_order;
drop index concurrently if exists tag_order;
