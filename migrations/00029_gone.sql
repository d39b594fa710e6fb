-- Files that were gone when they were to be read are left to another scan: only a listing of the whole folder removes books, since only
-- it tells a file that went from a disk that did.

-- +goose Up
alter table scan add column files_gone bigint not null default 0;

-- +goose Down
alter table scan drop column files_gone;
