-- Books are sorted by the day that is kept with them (00078). The index of before goes later: until then it is used by
-- programs before this one.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists book_release;
create index concurrently book_release on book (tenant_id, release_day, id) where release_day is not null and deleted_at is null;

-- +goose Down
drop index concurrently if exists book_release;
