-- What has no number and no year is last in both directions. An index that was interrupted while it was made is there, but not
-- valid: it is made anew.

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists series_year_desc;
create index concurrently series_year_desc on series (tenant_id, year desc nulls last, id desc);
drop index if exists book_number_desc;
create index concurrently book_number_desc on book (tenant_id, number desc nulls last, id desc) where deleted_at is null;

-- +goose Down
drop index series_year_desc, book_number_desc;
