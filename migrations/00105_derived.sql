-- What follows from other data stays true: after a library's coverage has changed, and after books and series have moved.

-- +goose Up
set local lock_timeout = '5s';
-- reshaped_at is when what the library covers has changed last. A scan that began before has not looked at all of it.
alter table library add column if not exists reshaped_at timestamptz;
-- +goose StatementBegin
create or replace function app.note_reshaped() returns trigger language plpgsql as $$
begin
  new.reshaped_at := clock_timestamp(); -- of a change that waited for a lock, the time after it
  return new;
end $$;
-- +goose StatementEnd
create trigger library_reshaped before update of path, bucket, prefix, excluded_patterns, allowed_formats on library for each row
  when ((old.path, old.bucket, old.prefix, old.excluded_patterns, old.allowed_formats)
    is distinct from (new.path, new.bucket, new.prefix, new.excluded_patterns, new.allowed_formats))
  execute function app.note_reshaped();

-- +goose Down
set local lock_timeout = '5s';
drop trigger library_reshaped on library;
drop function app.note_reshaped();
alter table library drop column reshaped_at;
