-- Readings that a user takes out of the own history.

-- +goose Up
set local lock_timeout = '5s';

-- A row that is gone would be logged again with the next write to its book, as a pass that was completed and is not in the log.
alter table completion add column forgotten boolean not null default false;

-- +goose Down
alter table completion drop column forgotten;
