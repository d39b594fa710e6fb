-- Objects that no row names are found: which keys of page packs are named is asked by the thousand.

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists page_pack_key;
create index concurrently page_pack_key on page_pack (tenant_id, key);

-- +goose Down
drop index page_pack_key;
