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

-- described names the fields, as locks does, that series.json has filled: they go with it. cover_source is the cover
-- that people chose: file, first_book, or book: and its id; null is the default.
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
  cover_source        text,
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
create index book_error on book (tenant_id, error_at desc, id) where error_type is not null and deleted_at is null;
create index book_series_all on book (tenant_id, series_id);
-- What is gone: looked into for every new book, whose content may have been there before.
create index book_deleted on book (tenant_id, library_id, size, fingerprint) where deleted_at is not null;
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
-- waits for; deaths counts the workers that fell silent while they had it; done says that its own work is over. queued_at is when its message was sent, null while it waits
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
  deaths           integer not null default 0,
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

-- The counters of a library scan; its row has the id of its task. removals_held is how many books it would have removed
-- had it not stopped for an administrator to confirm that.
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
  books_moved     bigint not null default 0,
  removals_held   bigint not null default 0,
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

-- keep_locked is the new metadata of a book with every locked field as it was, also one that was locked while it was
-- empty; the lock of a role (writerLock) keeps the authors of that role.
-- +goose StatementBegin
create function app.keep_locked(p_new jsonb, p_old jsonb, p_locks text[]) returns jsonb language sql immutable as $$
  select (p_new - array(select regexp_replace(k, '(Json)?Lock$', '') from unnest(p_locks) k))
    || coalesce((select jsonb_object_agg(f, p_old -> f) from (select regexp_replace(k, '(Json)?Lock$', '') f from unnest(p_locks) k) l where p_old ? f), '{}')
    || case when 'authorsJsonLock' = any(p_locks) or not p_locks && '{writerLock,pencillerLock,inkerLock,coloristLock,lettererLock,coverArtistLock,editorLock,translatorLock}'::text[]
      then '{}' else jsonb_build_object('authors', coalesce((select jsonb_agg(x.a) from (
        select a from jsonb_array_elements(coalesce(p_new -> 'authors', '[]')) a where not replace(a ->> 'role', 'cover_artist', 'coverArtist') || 'Lock' = any(p_locks)
        union all
        select a from jsonb_array_elements(coalesce(p_old -> 'authors', '[]')) a where replace(a ->> 'role', 'cover_artist', 'coverArtist') || 'Lock' = any(p_locks)) x), '[]')) end
$$;
-- +goose StatementEnd

-- moves_since is how far back a book may have appeared that takes the place of one that is found gone now: for a scan,
-- since the library was last scanned to its end; an hour where the store announced it, whose word comes in any order.
-- +goose StatementBegin
create function app.moves_since(p_library uuid, p_scan uuid) returns timestamptz language sql stable as $$
  select coalesce(
    (select min(t.created_at) from public.library l join public.scan s on s.tenant_id = l.tenant_id and s.library_id = l.id
      join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
      where l.tenant_id = app.tenant() and l.id = p_library and p_scan is not null
        and (t.status in ('pending', 'running') or t.created_at > coalesce(l.last_scanned_at, '-infinity'))),
    now() - interval '1 hour');
$$;
-- +goose StatementEnd

-- drop_empty_series removes those of the series that have no book left, not even one whose file is gone, where the
-- setting purge.purge_empty_series allows, and tells which.
-- +goose StatementBegin
create function app.drop_empty_series(p_series uuid[]) returns setof uuid language sql as $$
  delete from public.series s where s.tenant_id = app.tenant() and s.id = any(p_series) and s.book_count = 0
    and not exists (select from public.book b where b.tenant_id = app.tenant() and b.series_id = s.id)
    and coalesce((select value from public.setting where tenant_id = app.tenant() and key = 'purge.purge_empty_series'), 'true') = 'true'
  returning s.id;
$$;
-- +goose StatementEnd

-- replace_series lets a series go on under the path of a newer one whose folder is the old one's under another name:
-- books, and what the folder says, come over, and the newer series goes. It says no, and does nothing, while the older one
-- has books of its own, and where the newer one appeared before p_since or somebody has locked a field of it.
-- +goose StatementBegin
create function app.replace_series(p_scan uuid, p_old uuid, p_new uuid, p_since timestamptz) returns boolean language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_new public.series;
begin
  select n.* into v_new from public.series n join public.series o on o.tenant_id = n.tenant_id and o.id = p_old
    where n.tenant_id = v_tenant and n.id = p_new and n.id <> o.id and n.library_id = o.library_id and o.book_count = 0
      and n.created_at >= p_since and n.locks = '{}' and o.created_at <= n.created_at;
  if not found then
    return false;
  end if;
  update public.book set series_id = p_old where tenant_id = v_tenant and series_id = p_new;
  delete from public.series where tenant_id = v_tenant and id = p_new;
  update public.series s set path = v_new.path, name = v_new.name, updated_at = now(),
      title = case when 'title' = any(s.locks) then s.title else v_new.title end,
      search_title = case when 'title' = any(s.locks) then s.search_title else v_new.search_title end,
      title_sort = case when s.locks && '{title,titleSort}' then s.title_sort else v_new.title_sort end
    where s.tenant_id = v_tenant and s.id = p_old;
  update public.scan set series_created = greatest(series_created - 1, 0) where tenant_id = v_tenant and id = p_scan;
  return true;
end $$;
-- +goose StatementEnd

-- rename_series finds series that have lost all their books while a folder appeared with the same files: the first
-- five have the same names and sizes. Each goes on under the new path; was is the series that had been made of it.
-- +goose StatementBegin
create function app.rename_series(p_library uuid, p_scan uuid, p_series uuid[]) returns table (id uuid, was uuid) language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_since constant timestamptz := app.moves_since(p_library, p_scan);
begin
  for id, was in
    with listed as (
      select s.id, s.path, s.book_count = 0 as empty, (
        select array_agg(f.name || '/' || f.size order by f.name, f.size) from (
          select lower(substring(k.key from '[^/]*$')) as name, k.size from public.book k
          where k.tenant_id = v_tenant and k.series_id = s.id and (s.book_count = 0) = (k.deleted_at is not null)
            and (k.deleted_at is null or k.deleted_at >= v_since)
          order by 1, 2 limit 5) f) as files
      from public.series s
      where s.tenant_id = v_tenant and s.library_id = p_library and (s.id = any(p_series) and s.book_count = 0 or s.created_at >= v_since and s.book_count > 0))
    select o.id, n.id from listed o join listed n on n.files = o.files and o.empty and not n.empty order by o.path, n.path
  loop
    if app.replace_series(p_scan, id, was, v_since) then
      return next;
    end if;
  end loop;
end $$;
-- +goose StatementEnd

-- adopt_moved makes one book of two where a file has moved: of one whose file is gone and one that appeared with the
-- same content, that is, fingerprint and size. The older row stays, with its id, its metadata and what people have read,
-- and takes the place of the newer one, which goes. p_gone are books just marked deleted: one that appeared since
-- moves_since (and, without a scan, that nobody has read) may be theirs. Or p_came are books analysed for the first time: any that is marked deleted may be
-- theirs. Where several have the same content, those with the same file name belong together, then the most read with
-- the first by key. A book that somebody has locked a field of stays itself.
--
-- It tells the books that stayed, the rows that went (was) with their series (came_series, which went too where it
-- is not series_id: the series of the old place goes on under its path), and the series that were left (left_gone: and had
-- no other book).
-- +goose StatementBegin
create function app.adopt_moved(p_library uuid, p_scan uuid, p_gone uuid[], p_came uuid[])
returns table (id uuid, was uuid, series_id uuid, came_series uuid, left_series uuid, left_gone boolean) language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_since constant timestamptz := app.moves_since(p_library, p_scan);
  v_scan timestamptz := (select t.created_at from public.task t where t.tenant_id = v_tenant and t.id = p_scan);
  v_by_name boolean;
  v_gone uuid[] := '{}';
  v_came uuid[] := '{}';
  v_old public.book[];
  v_new public.book[];
  v_dropped uuid[];
  v_pair record;
begin
  if p_gone is null then
    select array_agg(distinct g.id) into p_gone
      from public.book c cross join lateral (
        select o.id from public.book o where o.tenant_id = v_tenant and o.library_id = p_library and o.size = c.size
          and o.fingerprint = c.fingerprint and o.deleted_at is not null
        order by (select count(*) from public.progress p where p.tenant_id = v_tenant and p.book_id = o.id) desc, o.key limit cardinality(p_came)) g
      where c.tenant_id = v_tenant and c.id = any(p_came) and c.fingerprint <> '';
  else
    select array_agg(distinct c.id) into p_came
      from public.book g cross join lateral (
        select n.id from public.book n where n.tenant_id = v_tenant and n.library_id = p_library and n.fingerprint = g.fingerprint
          and n.size = g.size and n.deleted_at is null and n.created_at >= v_since
          and (p_scan is not null or not exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = n.id))
        order by n.key limit cardinality(p_gone)) c
      where g.tenant_id = v_tenant and g.id = any(p_gone) and g.fingerprint <> '' and g.deleted_at is not null;
  end if;
  if p_gone is null or p_came is null then
    return;
  end if;
  foreach v_by_name in array array[true, false] loop
    with gone as (
      select b.id, b.fingerprint, b.size, n.name, row_number() over (partition by b.fingerprint, b.size, n.name order by (
          select count(*) from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id) desc, b.key) as place
      from public.book b cross join lateral (select case when v_by_name then substring(b.key from '[^/]*$') else '' end as name) n
      where b.tenant_id = v_tenant and b.id = any(p_gone) and b.id <> all(v_gone)),
    came as (
      select b.id, b.fingerprint, b.size, n.name, row_number() over (partition by b.fingerprint, b.size, n.name order by b.key) as place
      from public.book b cross join lateral (select case when v_by_name then substring(b.key from '[^/]*$') else '' end as name) n
      where b.tenant_id = v_tenant and b.id = any(p_came) and b.id <> all(v_came) and b.deleted_at is null
        and not exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> '{}'))
    select v_gone || coalesce(array_agg(gone.id), '{}'), v_came || coalesce(array_agg(came.id), '{}') into v_gone, v_came
      from gone join came using (fingerprint, size, name, place);
  end loop;
  if v_gone = '{}' then
    return;
  end if;

  delete from public.page_index x where x.tenant_id = v_tenant and x.book_id = any(v_gone);
  update public.page_index x set book_id = u.gone, revision = o.revision + 1
    from unnest(v_gone, v_came) as u(gone, came) join public.book o on o.tenant_id = v_tenant and o.id = u.gone
    where x.tenant_id = v_tenant and x.book_id = u.came;
  insert into public.progress as p (tenant_id, account_id, book_id, id, current_page, percentage, completed, completed_at, started_at, updated_at)
    select c.tenant_id, c.account_id, u.gone, c.id, c.current_page, c.percentage, c.completed, c.completed_at, c.started_at, c.updated_at
    from unnest(v_gone, v_came) as u(gone, came) join public.progress c on c.tenant_id = v_tenant and c.book_id = u.came
    on conflict (tenant_id, account_id, book_id) do update set current_page = excluded.current_page, percentage = excluded.percentage,
      completed = excluded.completed, completed_at = excluded.completed_at, updated_at = excluded.updated_at
    where p.updated_at < excluded.updated_at;
  update public.completion c set book_id = u.gone from unnest(v_gone, v_came) as u(gone, came)
    where c.tenant_id = v_tenant and c.book_id = u.came and not exists (select from public.completion o
      where o.tenant_id = v_tenant and o.account_id = c.account_id and o.book_id = u.gone and o.completed_at = c.completed_at);
  v_old := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_gone));
  v_new := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_came));
  update public.book_metadata m set metadata = app.keep_locked(c.metadata, m.metadata, m.locks), warnings = c.warnings, updated_at = now()
    from unnest(v_gone, v_came) as u(gone, came) join unnest(v_old) o on o.id = u.gone join unnest(v_new) n on n.id = u.came
    join public.book_metadata c on c.tenant_id = v_tenant and c.book_id = u.came
    where m.tenant_id = v_tenant and m.book_id = u.gone and num_nonnulls(o.sidecar, n.sidecar) > 0; -- else the file says what it said
  delete from public.book b where b.tenant_id = v_tenant and b.id = any(v_came);
  update public.book k set key = n.key, series_id = n.series_id, size = n.size, etag = n.etag, modified_at = n.modified_at, seen_at = n.seen_at,
      format = n.format, sidecar = n.sidecar, reading_direction = n.reading_direction, page_count = n.page_count, analyzed = n.analyzed,
      title = case when 'titleLock' = any(l.locks) then k.title else n.title end,
      search_title = case when 'titleLock' = any(l.locks) then k.search_title else n.search_title end,
      title_sort = case when 'titleSortLock' = any(l.locks) then k.title_sort else n.title_sort end,
      number = case when 'numberLock' = any(l.locks) then k.number else n.number end,
      volume = case when 'volumeLock' = any(l.locks) then k.volume else n.volume end,
      chapter = case when 'chapterLock' = any(l.locks) then k.chapter else n.chapter end,
      error_type = null, error_message = null, error_at = null, deleted_at = null, revision = k.revision + 1, updated_at = now()
    from unnest(v_gone, v_came) as u(gone, came) join unnest(v_new) n on n.id = u.came
    cross join lateral (select coalesce((select m.locks from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = u.gone), '{}') as locks) l
    where k.tenant_id = v_tenant and k.id = u.gone;
  update public.scan s set books_moved = s.books_moved + d.moved, books_created = greatest(s.books_created - d.created, 0),
      books_deleted = greatest(s.books_deleted - d.deleted, 0)
    from (select cardinality(v_gone) as moved, (select count(*) from unnest(v_new) n where n.created_at >= v_scan) as created,
      (select count(*) from unnest(v_old) o where o.deleted_at >= v_scan) as deleted) d
    where s.tenant_id = v_tenant and s.id = p_scan;

  for v_pair in
    select o.series_id as old_series, n.series_id as new_series
    from unnest(v_gone, v_came) as u(gone, came) join unnest(v_old) o on o.id = u.gone join unnest(v_new) n on n.id = u.came
    where o.series_id <> n.series_id group by 1, 2 order by count(*) desc, min(n.key)
  loop
    perform app.replace_series(p_scan, v_pair.old_series, v_pair.new_series, v_since);
  end loop;
  v_dropped := array(select app.drop_empty_series(array(select o.series_id from unnest(v_old) o)));
  return query
    select k.id, n.id, k.series_id, n.series_id, o.series_id, o.series_id = any(v_dropped)
    from unnest(v_gone, v_came) as u(gone, came) join unnest(v_old) o on o.id = u.gone join unnest(v_new) n on n.id = u.came
    join public.book k on k.tenant_id = v_tenant and k.id = u.gone order by k.key;
end $$;
-- +goose StatementEnd

-- +goose Down
drop table scan, task, completion, progress, alternate_title, external_rating, external_id, external_link, page_index,
  sidecar, book_metadata, book, series_tag, tag, series_genre, genre, series, library_count, library, library_root;
drop function app.keep_locked, app.adopt_moved, app.rename_series, app.replace_series, app.drop_empty_series, app.moves_since, app.count_series, app.add_book_counts, app.count_books_insert, app.count_books_delete, app.count_books_update, app.hold_task;
