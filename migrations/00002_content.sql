-- Content: roots, libraries, series, books, pages, reading progress, tasks and scans.

-- +goose Up

-- Folders that the operator gave a tenant: an absolute path and the bucket and prefix that serve it.
create table library_root (
  tenant_id uuid not null references tenant on delete cascade,
  path      text not null,
  bucket    text not null,
  prefix    text not null default '',
  primary key (tenant_id, path)
);
call app.protect('library_root');

create table library (
  tenant_id                 uuid not null references tenant on delete cascade,
  id                        uuid not null,
  name                      text not null,
  path                      text not null,
  bucket                    text not null,
  prefix                    text not null,
  description               text,
  is_active                 boolean not null default true,
  allowed_formats           text[],
  excluded_patterns         text,
  default_reading_direction text not null default 'ltr',
  series_strategy           text not null,
  series_config             jsonb,
  book_strategy             text not null,
  book_config               jsonb,
  number_strategy           text not null,
  number_config             jsonb,
  title_preprocessing_rules jsonb,
  auto_match_conditions     jsonb,
  scan_enabled              boolean not null default false,
  scan_cron                 text,
  scan_timezone             text,
  scan_mode                 text not null default 'normal',
  scan_on_start             boolean not null default false,
  purge_deleted_on_scan     boolean not null default false,
  next_scan_at              timestamptz,
  last_scanned_at           timestamptz,
  created_at                timestamptz not null default now(),
  updated_at                timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index library_name on library (tenant_id, lower(name));
create index library_due on library (next_scan_at) where next_scan_at is not null;
-- Over all tenants: an object that the store announces is looked up by the folders it lies in.
create index library_place on library (bucket, prefix);
call app.protect('library', true);

-- Totals of a library, kept by the triggers below in the transaction that changes a book or series.
create table library_count (
  tenant_id  uuid not null,
  library_id uuid not null,
  books      bigint not null default 0,
  series     bigint not null default 0,
  bytes      bigint not null default 0,
  pages      bigint not null default 0,
  primary key (tenant_id, library_id),
  foreign key (tenant_id, library_id) references library on delete cascade
);
call app.protect('library_count');

-- described names the fields, as locks does, that series.json has filled: they go with it.
create table series (
  tenant_id           uuid not null,
  id                  uuid not null,
  library_id          uuid not null,
  path                text not null,
  name                text not null,
  fingerprint         text not null default '',
  title               text not null,
  title_sort          text not null collate natural_order,
  custom_title_sort   text,
  search_title        text not null,
  summary             text,
  publisher           text,
  imprint             text,
  status              text,
  reading_direction   text,
  language            text,
  age_rating          integer,
  year                integer,
  total_chapter_count double precision,
  total_volume_count  integer,
  authors             jsonb,
  custom_metadata     jsonb,
  locks               text[] not null default '{}',
  described           text[] not null default '{}',
  book_count          bigint not null default 0,
  file_size           bigint not null default 0,
  page_count          bigint not null default 0,
  created_at          timestamptz not null default now(),
  updated_at          timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, library_id) references library on delete cascade
);
create unique index series_path on series (tenant_id, library_id, path);
create index series_title on series (tenant_id, title_sort, id);
create index series_library_title on series (tenant_id, library_id, title_sort, id);
create index series_created on series (tenant_id, created_at, id);
create index series_updated on series (tenant_id, updated_at, id);
create index series_year on series (tenant_id, year, id);
create index series_books on series (tenant_id, book_count, id);
create index series_size on series (tenant_id, file_size, id);
create index series_pages on series (tenant_id, page_count, id);
create index series_name on series (tenant_id, path, id);
call app.protect('series');

create table genre (
  tenant_id  uuid not null references tenant on delete cascade,
  id         uuid not null,
  name       text not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index genre_name on genre (tenant_id, lower(name));
call app.protect('genre');

create table series_genre (
  tenant_id uuid not null,
  series_id uuid not null,
  genre_id  uuid not null,
  primary key (tenant_id, series_id, genre_id),
  foreign key (tenant_id, series_id) references series on delete cascade,
  foreign key (tenant_id, genre_id) references genre on delete cascade
);
create index series_genre_genre on series_genre (tenant_id, genre_id);
call app.protect('series_genre');

create table tag (
  tenant_id  uuid not null references tenant on delete cascade,
  id         uuid not null,
  name       text not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index tag_name on tag (tenant_id, lower(name));
call app.protect('tag');

create table series_tag (
  tenant_id uuid not null,
  series_id uuid not null,
  tag_id    uuid not null,
  primary key (tenant_id, series_id, tag_id),
  foreign key (tenant_id, series_id) references series on delete cascade,
  foreign key (tenant_id, tag_id) references tag on delete cascade
);
create index series_tag_tag on series_tag (tenant_id, tag_id);
call app.protect('series_tag');

-- key is the object's key below the library's prefix; etag is '' where the store has none, and then size and
-- modified_at identify the version. sidecar is the version of the package document that was read with it. deleted_at marks a file that is gone: its progress waits for its return. seen_at
-- is when the store was asked for what the row says: an answer to an earlier question never overwrites it, so that
-- a scan and announced changes may come in any order.
create table book (
  tenant_id         uuid not null,
  id                uuid not null,
  library_id        uuid not null,
  series_id         uuid not null,
  key               text not null collate "C",
  size              bigint not null,
  etag              text not null default '',
  modified_at       timestamptz not null,
  format            text not null,
  fingerprint       text not null default '',
  sidecar           uuid,
  title             text not null,
  title_sort        text not null collate natural_order,
  search_title      text not null,
  number            double precision,
  volume            integer,
  chapter           double precision,
  reading_direction text,
  page_count        integer not null default 0,
  analyzed          boolean not null default false,
  revision          integer not null default 0,
  error_type        text,
  error_message     text,
  error_at          timestamptz,
  deleted_at        timestamptz,
  seen_at           timestamptz not null default now(),
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, library_id) references library on delete cascade,
  foreign key (tenant_id, series_id) references series on delete cascade
);
create unique index book_key on book (tenant_id, library_id, key);
create index book_series on book (tenant_id, series_id, number, title_sort, id) where deleted_at is null;
create index book_title on book (tenant_id, title_sort, id) where deleted_at is null;
create index book_library_title on book (tenant_id, library_id, title_sort, id) where deleted_at is null;
create index book_created on book (tenant_id, created_at, id) where deleted_at is null;
create index book_modified on book (tenant_id, updated_at, id) where deleted_at is null;
create index book_size on book (tenant_id, size, id) where deleted_at is null;
create index book_pages on book (tenant_id, page_count, id) where deleted_at is null;
create index book_number on book (tenant_id, number, id) where deleted_at is null;
create index book_fingerprint on book (tenant_id, fingerprint) where fingerprint <> '';
create index book_series_all on book (tenant_id, series_id);
call app.protect('book');

-- The metadata record of a book: one JSON document, since it has forty optional fields that are read and
-- written as a whole; locks names those that only a person may change, as the
-- interface calls them (titleLock, authorsJsonLock).
create table book_metadata (
  tenant_id  uuid not null,
  book_id    uuid not null,
  metadata   jsonb not null default '{}',
  locks      text[] not null default '{}',
  warnings   text[] not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, book_id),
  foreign key (tenant_id, book_id) references book on delete cascade
);
call app.protect('book_metadata');

-- A file beside books that says something of them (kinds: shared/domain/library): key to modified_at and seen_at as in
-- book, about is what it speaks of, version is another one with every content. While it is pending it was not read;
-- then document is what it says, or problem why it says nothing.
create table sidecar (
  tenant_id   uuid not null,
  library_id  uuid not null,
  key         text not null collate "C",
  kind        text not null check (kind in ('opf', 'series', 'cover')),
  about       text not null collate "C",
  version     uuid not null,
  size        bigint not null,
  etag        text not null default '',
  modified_at timestamptz not null,
  seen_at     timestamptz not null default now(),
  pending     boolean not null default true,
  document    jsonb,
  problem     text,
  primary key (tenant_id, library_id, key),
  foreign key (tenant_id, library_id) references library on delete cascade
);
create index sidecar_about on sidecar (tenant_id, library_id, about, kind);
call app.protect('sidecar');

-- Where each page lies in the object: element n of every array belongs to page n. offsets and lengths are the
-- range to request (local header included), packed the stored bytes, sizes the plain ones, methods 0 or 8.
-- cover_* locate the cover where it is no page; null means page 1. file_* is the version of the object that was
-- read: while the book's is another, no page may be looked for at these places.
create table page_index (
  tenant_id    uuid not null,
  book_id      uuid not null,
  revision     integer not null,
  file_size    bigint not null,
  file_etag    text not null,
  file_modified timestamptz not null,
  names        text[] not null,
  types        text[] not null,
  offsets      bigint[] not null,
  lengths      bigint[] not null,
  packed       bigint[] not null,
  sizes        bigint[] not null,
  methods      smallint[] not null,
  crcs         bigint[] not null,
  widths       integer[] not null,
  heights      integer[] not null,
  cover_offset bigint,
  cover_length bigint,
  cover_packed bigint,
  cover_size   bigint,
  cover_method smallint,
  cover_crc    bigint,
  primary key (tenant_id, book_id),
  foreign key (tenant_id, book_id) references book on delete cascade
);
-- The index of an ordinary book stays in the row: each array stored elsewhere would cost a look-up of its own.
alter table page_index set (toast_tuple_target = 8160);
call app.protect('page_index');

create table external_link (
  tenant_id   uuid not null,
  id          uuid not null,
  series_id   uuid,
  book_id     uuid,
  source_name text not null,
  url         text not null,
  external_id text,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, series_id) references series on delete cascade,
  foreign key (tenant_id, book_id) references book on delete cascade,
  check (num_nonnulls(series_id, book_id) = 1)
);
create unique index external_link_series on external_link (tenant_id, series_id, source_name) where series_id is not null;
create unique index external_link_book on external_link (tenant_id, book_id, source_name) where book_id is not null;
call app.protect('external_link');

create table external_id (
  tenant_id      uuid not null,
  id             uuid not null,
  series_id      uuid,
  book_id        uuid,
  source         text not null,
  external_id    text not null,
  external_url   text,
  metadata_hash  text,
  last_synced_at timestamptz,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, series_id) references series on delete cascade,
  foreign key (tenant_id, book_id) references book on delete cascade,
  check (num_nonnulls(series_id, book_id) = 1)
);
create unique index external_id_series on external_id (tenant_id, series_id, source) where series_id is not null;
create unique index external_id_book on external_id (tenant_id, book_id, source) where book_id is not null;
call app.protect('external_id');

create table external_rating (
  tenant_id   uuid not null,
  id          uuid not null,
  series_id   uuid not null,
  source_name text not null,
  rating      double precision not null check (rating between 0 and 100),
  vote_count  integer,
  fetched_at  timestamptz not null default now(),
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, series_id) references series on delete cascade
);
create unique index external_rating_source on external_rating (tenant_id, series_id, source_name);
call app.protect('external_rating');

create table alternate_title (
  tenant_id  uuid not null,
  id         uuid not null,
  series_id  uuid not null,
  label      text not null,
  title      text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, series_id) references series on delete cascade
);
create index alternate_title_series on alternate_title (tenant_id, series_id);
call app.protect('alternate_title');

create table progress (
  tenant_id    uuid not null,
  account_id   uuid not null,
  book_id      uuid not null,
  id           uuid not null,
  current_page integer not null check (current_page >= 0),
  percentage   double precision check (percentage between 0 and 1),
  completed    boolean not null default false,
  completed_at timestamptz,
  started_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  primary key (tenant_id, account_id, book_id),
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, book_id) references book on delete cascade
);
create index progress_recent on progress (tenant_id, account_id, updated_at desc, book_id);
create index progress_open on progress (tenant_id, account_id, updated_at desc, book_id) where not completed;
create index progress_book on progress (tenant_id, book_id);
call app.protect('progress');

-- One row for each time a user finished a book; clearing progress keeps them.
create table completion (
  tenant_id    uuid not null,
  id           uuid not null,
  account_id   uuid not null,
  book_id      uuid not null,
  started_at   timestamptz not null,
  completed_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, book_id) references book on delete cascade
);
create unique index completion_book on completion (tenant_id, account_id, book_id, completed_at);
create index completion_of_book on completion (tenant_id, book_id);
call app.protect('completion');

-- A task is written in the transaction that causes it. lease_epoch fences a worker that lost its lease: each
-- claim raises it and app.hold_task refuses older ones. open_children counts unfinished tasks that this one
-- waits for; done says that its own work is over. queued_at is when its message was sent, null while it waits
-- for one and once it is claimed. place is where a handler stopped when its time was up.
create table task (
  tenant_id        uuid not null references tenant on delete cascade,
  id               uuid not null,
  type             text not null,
  status           text not null default 'pending'
                   check (status in ('pending', 'running', 'completed', 'failed', 'cancelled')),
  priority         integer not null default 0,
  params           jsonb not null default '{}',
  library_id       uuid,
  series_id        uuid,
  book_id          uuid,
  parent_id        uuid,
  dedupe_key       text,
  open_children    integer not null default 0,
  done             boolean not null default false,
  attempts         integer not null default 0,
  max_attempts     integer not null default 3,
  scheduled_for    timestamptz not null default now(),
  lease_epoch      integer not null default 0,
  lease_until      timestamptz,
  locked_by        text,
  queued_at        timestamptz,
  place            jsonb,
  progress_current bigint not null default 0,
  progress_total   bigint not null default 0,
  progress_message text,
  result           jsonb,
  last_error       text,
  created_by       uuid,
  created_at       timestamptz not null default now(),
  started_at       timestamptz,
  completed_at     timestamptz,
  primary key (tenant_id, id)
);
create index task_claim on task (tenant_id, priority desc, scheduled_for, id) where status = 'pending';
create index task_sent on task (tenant_id, queued_at) where status = 'pending' and queued_at is not null;
create index task_running on task (tenant_id, type, done) where status = 'running';
create index task_lease on task (lease_until) where status = 'running';
create index task_list on task (tenant_id, created_at desc, id);
create index task_status on task (tenant_id, status, created_at desc);
create index task_parent on task (tenant_id, parent_id) where parent_id is not null;
create index task_library on task (tenant_id, library_id, type, created_at desc);
create index task_finished on task (completed_at) where completed_at is not null;
create unique index task_dedupe on task (tenant_id, dedupe_key) where dedupe_key is not null and status in ('pending', 'running');
call app.protect('task', true);

-- The counters of a library scan; its row has the id of its task.
create table scan (
  tenant_id       uuid not null,
  id              uuid not null,
  library_id      uuid not null,
  mode            text not null,
  files_total     bigint not null default 0,
  files_processed bigint not null default 0,
  series_created  bigint not null default 0,
  books_created   bigint not null default 0,
  books_updated   bigint not null default 0,
  books_deleted   bigint not null default 0,
  books_restored  bigint not null default 0,
  error_count     bigint not null default 0,
  errors          text[] not null default '{}',
  primary key (tenant_id, id),
  foreign key (tenant_id, id) references task on delete cascade,
  foreign key (tenant_id, library_id) references library on delete cascade
);
create index scan_library on scan (tenant_id, library_id, id desc);
call app.protect('scan');

-- hold_task binds the transaction to the tenant of a running task and locks it against cancel and re-claim
-- until commit; it raises LB410 when the lease was lost or the task was cancelled, so that nothing of a
-- stale worker's batch takes effect. The same where the tenant is suspended or being deleted.
-- +goose StatementBegin
create function app.hold_task(p_tenant uuid, p_task uuid, p_epoch integer) returns void language plpgsql as $$
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  perform from public.task t
    where t.tenant_id = p_tenant and t.id = p_task and t.lease_epoch = p_epoch and t.status = 'running'
      and (t.parent_id is null or not exists (
        select from public.task p where p.tenant_id = p_tenant and p.id = t.parent_id and p.status = 'cancelled'))
      and exists (select from public.tenant o where o.id = p_tenant and o.status = 'active')
      and exists (select from public.tenant o where o.id = p_tenant and o.status = 'active')
    for share of t;
  if not found then
    raise exception 'task % is no longer held', p_task using errcode = 'LB410';
  end if;
end $$;
-- +goose StatementEnd

-- Counter triggers. Each locks the library's counter row first, so that concurrent writers of one library
-- queue up there and cannot deadlock on the series rows.
-- +goose StatementBegin
create function app.count_series() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into public.library_count as c (tenant_id, library_id, series)
    select tenant_id, library_id, count(*) from changed group by 1, 2
    on conflict (tenant_id, library_id) do update set series = c.series + excluded.series;
  else
    update public.library_count c set series = c.series - d.n
    from (select tenant_id, library_id, count(*) n from changed group by 1, 2) d
    where c.tenant_id = d.tenant_id and c.library_id = d.library_id;
  end if;
  return null;
end $$;
-- +goose StatementEnd
create trigger count_insert after insert on series referencing new table as changed
  for each statement execute function app.count_series();
create trigger count_delete after delete on series referencing old table as changed
  for each statement execute function app.count_series();

-- +goose StatementBegin
create function app.add_book_counts(p_tenant uuid[], p_library uuid[], p_series uuid[], p_books bigint[], p_bytes bigint[], p_pages bigint[])
returns void language sql as $$
  insert into public.library_count as c (tenant_id, library_id, books, bytes, pages)
  select d.t, d.l, sum(d.b), sum(d.y), sum(d.p)
  from unnest(p_tenant, p_library, p_books, p_bytes, p_pages) as d(t, l, b, y, p) group by 1, 2
  on conflict (tenant_id, library_id) do update
    set books = c.books + excluded.books, bytes = c.bytes + excluded.bytes, pages = c.pages + excluded.pages;
  update public.series s
  set book_count = s.book_count + d.b, file_size = s.file_size + d.y, page_count = s.page_count + d.p,
      updated_at = case when d.b <> 0 then now() else s.updated_at end
  from (select t, s, sum(b) b, sum(y) y, sum(p) p
        from unnest(p_tenant, p_series, p_books, p_bytes, p_pages) as u(t, s, b, y, p) group by 1, 2) d
  where s.tenant_id = d.t and s.id = d.s;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function app.count_books_insert() returns trigger language plpgsql as $$
begin
  perform app.add_book_counts(array_agg(tenant_id), array_agg(library_id), array_agg(series_id),
    array_agg(1::bigint), array_agg(size), array_agg(page_count::bigint))
  from added where deleted_at is null having count(*) > 0;
  return null;
end $$;
-- +goose StatementEnd
create trigger count_insert after insert on book referencing new table as added
  for each statement execute function app.count_books_insert();

-- +goose StatementBegin
create function app.count_books_delete() returns trigger language plpgsql as $$
begin
  perform app.add_book_counts(array_agg(r.tenant_id), array_agg(r.library_id), array_agg(r.series_id),
    array_agg(-1::bigint), array_agg(-r.size), array_agg(-r.page_count::bigint))
  from removed r join public.library l on l.tenant_id = r.tenant_id and l.id = r.library_id
  where r.deleted_at is null having count(*) > 0;
  return null;
end $$;
-- +goose StatementEnd
create trigger count_delete after delete on book referencing old table as removed
  for each statement execute function app.count_books_delete();

-- +goose StatementBegin
create function app.count_books_update() returns trigger language plpgsql as $$
begin
  -- What the rows add now less what they added before, per series: linear in the rows, where joining the two
  -- transition tables is quadratic, since the planner knows nothing of their size.
  perform app.add_book_counts(array_agg(d.tenant_id), array_agg(d.library_id), array_agg(d.series_id),
    array_agg(d.books), array_agg(d.bytes), array_agg(d.pages))
  from (
    select tenant_id, library_id, series_id, sum(n)::bigint as books, sum(n * size)::bigint as bytes, sum(n * page_count)::bigint as pages
    from (select tenant_id, library_id, series_id, 1 as n, size, page_count from added where deleted_at is null
          union all
          select tenant_id, library_id, series_id, -1, size, page_count from removed where deleted_at is null) c
    group by 1, 2, 3) d
  where (d.books, d.bytes, d.pages) <> (0, 0, 0)
  having count(*) > 0;
  return null;
end $$;
-- +goose StatementEnd
create trigger count_update after update on book referencing old table as removed new table as added
  for each statement execute function app.count_books_update();

-- +goose Down
drop table scan, task, completion, progress, alternate_title, external_rating, external_id, external_link, page_index,
  sidecar, book_metadata, book, series_tag, tag, series_genre, genre, series, library_count, library, library_root;
drop function app.count_series, app.add_book_counts, app.count_books_insert, app.count_books_delete, app.count_books_update, app.hold_task;
