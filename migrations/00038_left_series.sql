-- Which series a book has left last because its metadata names another, and when: a series goes on under the new name only where
-- that is what all its books have done, in however many batches they are read.

-- +goose Up
set local lock_timeout = '5s';
alter table book add column left_series_id uuid;
alter table book add column left_at timestamptz;

-- +goose Down
alter table book drop column left_at;
alter table book drop column left_series_id;
