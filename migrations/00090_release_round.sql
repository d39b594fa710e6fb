-- Several polls that share the series of a source cover them as of the first one, also if one of them fails.

-- +goose Up
set local lock_timeout = '5s';
alter table release_source add column round_at timestamptz; -- the end of the first of several polls that share the series; null between them

-- +goose Down
alter table release_source drop column round_at;
