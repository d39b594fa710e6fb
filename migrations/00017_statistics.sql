-- Statistics while a library is filled (00012) are gathered half as often, and of fewer tables: of 100,000 books they took
-- a twentieth of the scan.

-- +goose Up
-- gather_statistics is told how many books were written since it last gathered. It does when they are as many as
-- Postgres knows of, or 50,000: of a large table that takes seconds, and a batch that reads as many books takes no less.
-- Only books and series are looked up in more than one way. A table that something else is analysing is left to that. The
-- function belongs to the owner, since only an owner may analyse a table.
-- +goose StatementBegin
create or replace function app.gather_statistics(p_written bigint) returns boolean language plpgsql security definer set search_path = pg_catalog, public as $$
begin
  if p_written < 100 or p_written < least(50000, (select c.reltuples from pg_class c where c.oid = 'public.book'::regclass)) then
    return false;
  end if;
  analyze (skip_locked) public.book, public.series;
  return true;
end $$;
-- +goose StatementEnd

-- +goose Down
-- It does the same more often.
select 1;
