-- The trigrams of other titles, by tenant (see 00046).

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists alternate_title_find;
create index concurrently alternate_title_find on alternate_title using gin (tenant_id, app.search_form(title) gin_trgm_ops) with (gin_pending_list_limit = 512);

-- +goose Down
drop index concurrently if exists alternate_title_find;
