-- Statistics while a library is filled (00012, 00017) are gathered of the tasks too. Sessions plan once what each batch asks about its
-- scan, in the first seconds of a new server, when there are next to no tasks and every index of them looks the same: each batch
-- then read all tasks of the tenant, until autovacuum looked. Of 100,000 books a tenth of Postgres' time went there.

-- +goose Up
-- gather_statistics is told how many books were written since it last gathered. It does when they are as many as
-- Postgres knows of, or 50,000: of a large table that takes seconds, and a batch that reads as many books takes no less.
-- Only books, series and tasks are looked up in more than one way. A table that something else is analysing is left to that. The
-- function belongs to the owner, since only an owner may analyse a table.
-- +goose StatementBegin
create or replace function app.gather_statistics(p_written bigint) returns boolean language plpgsql security definer set search_path = pg_catalog, public as $$
begin
  if p_written < 100 or p_written < least(50000, (select c.reltuples from pg_class c where c.oid = 'public.book'::regclass)) then
    return false;
  end if;
  analyze (skip_locked) public.book, public.series, public.task;
  return true;
end $$;
-- +goose StatementEnd

-- +goose Down
-- It does the same of fewer tables.
select 1;
