-- Long work that may stop at any time goes on where it was.

-- +goose Up
set local lock_timeout = '5s';
-- The deletion of a library has looked, up to this key, for books whose files are in other libraries; it looks from the
-- start again where it last did so some time ago.
alter table library add column left_place text not null default '', add column left_at timestamptz;
-- The measurement of what a tenant has in the media bucket: the last key, the size up to it, the bytes at its start.
alter table rendition_usage add column place text not null default '', add column place_sum bigint not null default 0,
  add column place_before bigint not null default 0;

-- +goose Down
alter table library drop column left_place, drop column left_at;
alter table rendition_usage drop column place, drop column place_sum, drop column place_before;
