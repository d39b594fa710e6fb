-- A folder that the store cannot list, for its permissions or its name, failed the scan of the whole library.

-- +goose Up
set local lock_timeout = '5s';
-- unlisted is how many folders a scan could not list: it has not looked at all of the library.
alter table scan add column if not exists unlisted integer not null default 0;

-- +goose Down
alter table scan drop column if exists unlisted;
