-- The trigrams of what is kept of other titles (see 00074), and of those of which nothing is kept yet. 00076 searches it.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists alternate_title_search;
create index concurrently alternate_title_search on alternate_title using gin (tenant_id, coalesce(search_title, app.search_form(title)) gin_trgm_ops)
  with (gin_pending_list_limit = 512);

-- +goose Down
drop index concurrently if exists alternate_title_search;
