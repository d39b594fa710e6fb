-- The day that a book came out is kept with the book: to sort by it looked up each book before the page.

-- +goose Up
set local lock_timeout = '5s';
alter table book add column release_day numeric; -- app.release_day of its metadata; null also in rows that are not filled yet

-- By triggers, since people, scans and the handing over of books write metadata, and programs before this one. All of
-- them hold the books before.
-- +goose StatementBegin
create function app.keep_release_days() returns trigger language plpgsql as $$
begin
  update public.book b set release_day = app.release_day(n.metadata) from added n
    where b.tenant_id = n.tenant_id and b.id = n.book_id and b.id = any(array(select a.book_id from added a)) -- by the index, however many there are
      and b.release_day is distinct from app.release_day(n.metadata);
  return null;
end $$;
-- +goose StatementEnd
create trigger release_insert after insert on book_metadata referencing new table as added for each statement execute function app.keep_release_days();
create trigger release_update after update on book_metadata referencing new table as added for each statement execute function app.keep_release_days();

-- Tenants whose books of before have not all been filled, and the last book that is.
create table release_fill (
  tenant_id uuid primary key references tenant on delete cascade,
  after     uuid not null default '00000000-0000-0000-0000-000000000000'
);
call app.protect('release_fill', true); -- the scheduler looks for them
insert into release_fill (tenant_id) select id from tenant;

-- fill_release_days fills the next p_books books of the tenant that have metadata.
-- +goose StatementBegin
create function app.fill_release_days(p_books integer) returns void language plpgsql as $$
declare
  v_after uuid := (select f.after from public.release_fill f where f.tenant_id = app.tenant() for update);
  v_ids uuid[] := array(select m.book_id from public.book_metadata m where m.tenant_id = app.tenant() and m.book_id > v_after order by m.book_id limit p_books);
begin
  perform from public.library_count c where c.tenant_id = app.tenant() order by c.library_id for update; -- as scans do
  perform from public.book b where b.tenant_id = app.tenant() and b.id = any(v_ids) order by b.id for no key update;
  update public.book b set release_day = app.release_day(m.metadata) from public.book_metadata m
    where b.tenant_id = app.tenant() and b.id = any(v_ids) and m.tenant_id = app.tenant() and m.book_id = b.id and m.book_id = any(v_ids)
      and b.release_day is distinct from app.release_day(m.metadata);
  if cardinality(v_ids) < p_books then
    delete from public.release_fill f where f.tenant_id = app.tenant();
  else
    update public.release_fill f set after = v_ids[p_books] where f.tenant_id = app.tenant();
  end if;
end $$;
-- +goose StatementEnd

-- +goose Down
drop function app.fill_release_days(integer);
drop table release_fill;
drop trigger release_update on book_metadata;
drop trigger release_insert on book_metadata;
drop function app.keep_release_days();
alter table book drop column release_day;
