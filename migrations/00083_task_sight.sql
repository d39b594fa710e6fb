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

-- +goose Down
alter table user_plugin drop column recommended_sight;
call app.limit_books('task');
