-- Exports: files of the series and books that a user sees, with what the user has read and thinks of them.

-- +goose Up
set local lock_timeout = '5s'; -- the foreign key locks account

-- The id is also that of the task that makes the file: while it has neither completed_at nor error, that tells how far
-- it is. object is the file's name in the media bucket; sight is what app.sight said when it was made.
create table series_export (
  tenant_id    uuid not null,
  id           uuid not null,
  account_id   uuid not null,
  format       text not null check (format in ('csv', 'json', 'md')),
  export_type  text not null check (export_type in ('series', 'books', 'both')),
  library_ids  uuid[] not null check (cardinality(library_ids) <= 500),
  fields       text[] not null check (cardinality(fields) <= 100),
  book_fields  text[] not null check (cardinality(book_fields) <= 100),
  error        text,
  object       text,
  sight        text,
  file_size    bigint,
  row_count    bigint,
  created_at   timestamptz not null default now(),
  started_at   timestamptz,
  completed_at timestamptz,
  expires_at   timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, account_id) references account on delete cascade,
  check (completed_at is null or error is null and num_nulls(object, sight, file_size, row_count) = 0)
);
create index series_export_account on series_export (tenant_id, account_id, created_at desc, id);
call app.protect('series_export');

-- When the exports of a tenant are cleaned up: a row where there were some since nothing was left to clean up. made is
-- the schedule that next_at was made of. requests counts exports that were asked for, deletions the times that some
-- were deleted, whose files are still there; asked is the count of deletions that a task was added for.
-- It is searched over all tenants: the scheduler finds what is due.
create table export_cleanup (
  tenant_id uuid not null references tenant on delete cascade,
  made      text not null default '',
  next_at   timestamptz not null default now(),
  requests  bigint not null default 0,
  deletions bigint not null default 0,
  asked     bigint not null default 0,
  primary key (tenant_id)
);
call app.protect('export_cleanup', true);

-- +goose StatementBegin
create function app.count_deleted_exports() returns trigger language plpgsql as $$
begin
  update public.export_cleanup c set deletions = c.deletions + 1 where c.tenant_id in (select r.tenant_id from removed r);
  return null;
end $$;
-- +goose StatementEnd
create trigger count_deleted after delete on series_export referencing old table as removed
  for each statement execute function app.count_deleted_exports();

-- sight stands for what sharing tags leave the user of the current transaction: while it is the same, so is what they
-- hide of the series that there were.
create function app.sight() returns text language sql stable parallel safe as $$
  select case when app.limited() then md5(concat_ws(' ',
      (select string_agg(t::text, ',' order by t) from unnest(app.allowed()) t), '/',
      (select string_agg(t::text, ',' order by t) from unnest(app.denied()) t), '/',
      (select count(*) || ' ' || coalesce(sum(hashtextextended(x.series_id::text || x.sharing_tag_id, 0)::numeric), 0)
        from public.series_sharing_tag x where x.tenant_id = app.tenant()
          and x.sharing_tag_id = any(coalesce(app.allowed(), '{}') || coalesce(app.denied(), '{}')))))
    else '' end
$$;

-- +goose Down
drop table export_cleanup;
drop table series_export;
drop function app.count_deleted_exports();
drop function app.sight();
