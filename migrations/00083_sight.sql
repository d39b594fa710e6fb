-- What is kept of a series outlasts that a user sees it.

-- +goose Up
set local lock_timeout = '5s'; -- task is locked

-- A task of a series or a book that is gone is hidden from whoever does not see all: nobody knows any more whether they
-- would have seen it. What tells of a series that is there is left to the policy of series.
alter policy limited on task using (tenant_id = (select app.tenant())
  and (task.book_id is null or exists (select from public.book b where b.tenant_id = (select app.tenant()) and b.id = task.book_id))
  and (task.series_id is null or exists (select from public.series s where s.tenant_id = (select app.tenant()) and s.id = task.series_id)));

-- What app.sight said when the plugin was told what the user reads: what it recommends may name that.
alter table user_plugin add column recommended_sight text;

-- last_place is the place of the last member of a collection, also of one that is hidden from the user: what they add
-- comes behind it.
create function app.last_place(p_collection uuid) returns bigint language sql stable security definer set search_path = pg_catalog, public
  as $$ select coalesce(max(m.place), 0) from public.collection_member m where m.tenant_id = app.tenant() and m.collection_id = p_collection $$;
revoke all on function app.last_place(uuid) from public;
grant execute on function app.last_place(uuid) to longbox_app, longbox_limited;

-- +goose Down
drop function app.last_place(uuid);
alter table user_plugin drop column recommended_sight;
call app.limit_books('task');
