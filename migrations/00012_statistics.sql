-- Statistics while a library is filled. Autovacuum gathers them a minute later, or not before a tenth of all books is
-- new. Until then Postgres takes a new library for nearly empty, and reads all of its books to find those of a batch.

-- +goose Up
-- gather_statistics belongs to the owner, since only an owner may analyse a table. Of page indexes the ids suffice: the
-- rest is large and no condition has it. A table that something else is analysing is left to that.
-- +goose StatementBegin
create function app.gather_statistics() returns void language plpgsql security definer set search_path = pg_catalog, public as $$
begin
  analyze (skip_locked) public.book, public.series, public.book_metadata, public.page_index (tenant_id, book_id), public.library_count, public.task;
end $$;
-- +goose StatementEnd
revoke execute on function app.gather_statistics() from public;
grant execute on function app.gather_statistics() to longbox_app;

-- +goose Down
drop function app.gather_statistics();
