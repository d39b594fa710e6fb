-- Statistics while a library is filled. Autovacuum gathers them a minute later, or not before a tenth of all books is
-- new. Until then Postgres takes a new library for nearly empty, and reads all of its books to find those of a batch.

-- +goose Up
-- gather_statistics is told how many books were written since it was last of use. It gathers when they are half of what
-- Postgres knows of, or 50,000: of a large table that takes seconds, and a batch that reads as many books takes no less.
-- Of page indexes the ids suffice: the rest is large and no condition has it. A table that something else is analysing is
-- left to that. The function belongs to the owner, since only an owner may analyse a table.
-- +goose StatementBegin
create function app.gather_statistics(p_written bigint) returns boolean language plpgsql security definer set search_path = pg_catalog, public as $$
begin
  if p_written < 100 or p_written < least(50000, (select c.reltuples / 2 from pg_class c where c.oid = 'public.book'::regclass)) then
    return false;
  end if;
  analyze (skip_locked) public.book, public.series, public.book_metadata, public.page_index (tenant_id, book_id), public.library_count, public.task;
  return true;
end $$;
-- +goose StatementEnd
revoke execute on function app.gather_statistics(bigint) from public;
grant execute on function app.gather_statistics(bigint) to longbox_app;

-- +goose Down
drop function app.gather_statistics(bigint);
