-- The books that have left a series are found by it: where a series is emptied, all books of the library were read.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists book_left_series;
create index concurrently book_left_series on book (tenant_id, left_series_id) where left_series_id is not null;

-- +goose Down
drop index concurrently if exists book_left_series;
