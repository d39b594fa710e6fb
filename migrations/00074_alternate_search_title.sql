-- What is searched for in other titles is kept, as series and books have it: to make it for each title that has a word
-- took most of the time of a search.

-- +goose Up
set local lock_timeout = '5s';
alter table alternate_title add column search_title text; -- app.search_form(title); null in rows that are not filled yet

-- By a trigger, since scans and the handing over of series write titles, too, and programs before this one.
-- +goose StatementBegin
create function app.set_search_title() returns trigger language plpgsql as $$
begin
  new.search_title := app.search_form(new.title);
  return new;
end $$;
-- +goose StatementEnd
create trigger set_search_title before insert or update of title on alternate_title for each row execute function app.set_search_title();

-- Tenants whose old titles have not all been filled, and the last title that is.
create table alternate_title_fill (
  tenant_id uuid primary key references tenant on delete cascade,
  after     uuid not null default '00000000-0000-0000-0000-000000000000'
);
call app.protect('alternate_title_fill', true); -- the scheduler looks for them
insert into alternate_title_fill (tenant_id) select id from tenant;

-- fill_alternate_titles fills the next p_titles titles of the tenant.
-- +goose StatementBegin
create function app.fill_alternate_titles(p_titles integer) returns void language plpgsql as $$
declare
  v_after uuid := (select f.after from public.alternate_title_fill f where f.tenant_id = app.tenant() for update);
  v_ids uuid[] := array(select x.id from public.alternate_title x where x.tenant_id = app.tenant() and x.id > v_after order by x.id limit p_titles);
begin
  perform from public.library_count c where c.tenant_id = app.tenant() order by c.library_id for update; -- as scans do
  perform from public.series s where s.tenant_id = app.tenant()
    and s.id = any(array(select x.series_id from public.alternate_title x where x.tenant_id = app.tenant() and x.id = any(v_ids))) order by s.id for no key update;
  update public.alternate_title x set search_title = app.search_form(x.title) where x.tenant_id = app.tenant() and x.id = any(v_ids) and x.search_title is null;
  if cardinality(v_ids) < p_titles then
    delete from public.alternate_title_fill f where f.tenant_id = app.tenant();
  else
    update public.alternate_title_fill f set after = v_ids[p_titles] where f.tenant_id = app.tenant();
  end if;
end $$;
-- +goose StatementEnd

-- release_day is when a book came out, by its metadata: books are sorted by it. What is not known of the day is the first.
-- +goose StatementBegin
create function app.release_day(p_metadata jsonb) returns numeric language sql immutable parallel safe as $$
  select case when jsonb_typeof(p_metadata -> 'year') = 'number' then (p_metadata ->> 'year')::numeric * 10000
    + case when jsonb_typeof(p_metadata -> 'month') = 'number' then (p_metadata ->> 'month')::numeric else 1 end * 100
    + case when jsonb_typeof(p_metadata -> 'day') = 'number' then (p_metadata ->> 'day')::numeric else 1 end end
$$;
-- +goose StatementEnd

-- +goose Down
drop function app.release_day(jsonb);
drop function app.fill_alternate_titles(integer);
drop table alternate_title_fill;
drop trigger set_search_title on alternate_title;
drop function app.set_search_title();
alter table alternate_title drop column search_title;
