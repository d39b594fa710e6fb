-- A completed upload is known until it expires: who asks to complete it again, having lost the answer, hears the same.

-- +goose Up
set local lock_timeout = '5s';
alter table upload add column completed_at timestamptz;

-- +goose Down
set local lock_timeout = '5s';
delete from upload where completed_at is not null;
alter table upload drop column completed_at;
