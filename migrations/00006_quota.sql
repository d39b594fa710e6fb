-- Quotas of a tenant: books, and bytes of what is derived from them.

-- +goose Up

-- check_book_quota ends a statement that adds books, new ones or ones that come back, beyond the tenant's limit.
-- Who was below it before may always change and delete. Writers of one limited tenant queue up here, so that
-- two of them cannot both take the last place.
-- +goose StatementBegin
create function app.check_book_quota() returns trigger language plpgsql as $$
declare
  v_limit bigint := (select max_books from public.tenant where id = app.tenant());
begin
  if v_limit is null then
    return null;
  end if;
  if tg_op = 'UPDATE' then
    if (select count(*) from added where deleted_at is null) <= (select count(*) from removed where deleted_at is null) then
      return null;
    end if;
  elsif not exists (select from added where deleted_at is null) then
    return null;
  end if;
  if app.book_room() < 0 then
    raise exception 'The limit of % books of this library server is reached', v_limit using errcode = 'LB409';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create trigger quota_insert after insert on book referencing new table as added
  for each statement execute function app.check_book_quota();
create trigger quota_update after update on book referencing old table as removed new table as added
  for each statement execute function app.check_book_quota();

-- book_room tells how many books the entered tenant may still have: null without a limit, negative when it has
-- more. It keeps others from adding until the transaction ends.
-- +goose StatementBegin
create function app.book_room() returns bigint language plpgsql as $$
declare
  v_limit bigint := (select max_books from public.tenant where id = app.tenant());
begin
  if v_limit is null then
    return null;
  end if;
  perform pg_advisory_xact_lock(hashtextextended('longbox books ' || app.tenant(), 0));
  return v_limit - coalesce((select sum(books) from public.library_count where tenant_id = app.tenant()), 0)::bigint;
end $$;
-- +goose StatementEnd

-- What a tenant has in the media bucket: measured by listing it every hour, and added to in between.
create table rendition_usage (
  tenant_id   uuid not null references tenant on delete cascade,
  bytes       bigint not null default 0,
  measured_at timestamptz,
  primary key (tenant_id)
);
call app.protect('rendition_usage');

-- keep_rendition tells whether the entered tenant may store so many bytes more, and counts them if so.
-- +goose StatementBegin
create function app.keep_rendition(p_bytes bigint) returns boolean language plpgsql as $$
declare
  v_limit bigint := (select max_rendition_bytes from public.tenant where id = app.tenant());
begin
  if v_limit is null then
    return true;
  end if;
  insert into public.rendition_usage as u (tenant_id, bytes) select app.tenant(), p_bytes where p_bytes <= v_limit
  on conflict (tenant_id) do update set bytes = u.bytes + excluded.bytes where u.bytes + excluded.bytes <= v_limit;
  return found;
end $$;
-- +goose StatementEnd

-- +goose Down
drop trigger quota_insert on book;
drop trigger quota_update on book;
drop table rendition_usage;
drop function app.check_book_quota, app.book_room, app.keep_rendition;
