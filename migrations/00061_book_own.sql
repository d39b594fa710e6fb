-- Books have covers, genres and tags of their own, as series have: cover_source is custom: and the id of the picture
-- that is shown, null for that of the file.

-- +goose Up
set local lock_timeout = '5s'; -- book gets a column, and the foreign keys lock it
alter table book add column cover_source text;

create table book_cover (
  tenant_id   uuid not null,
  id          uuid not null,
  book_id     uuid not null,
  fingerprint text not null,
  type        text not null,
  image       bytea not null,
  size        bigint not null,
  width       integer,
  height      integer,
  source      text not null default 'custom',
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, book_id) references book on delete cascade
);
create unique index book_cover_image on book_cover (tenant_id, book_id, fingerprint);
alter table book_cover alter image set storage external; -- it is compressed already
call app.protect('book_cover');
call app.limit_books('book_cover');

create index book_cover_size on book_cover (tenant_id) include (size);
create index series_cover_size on series_cover (tenant_id) include (size);

-- hold_covers makes those who add covers of series or of books (p_of) wait for each other until the transaction ends, and
-- tells how many there are, in all of them; whoever holds the series or book calls it. Security definer, or it would
-- count what the user sees.
-- +goose StatementBegin
create function app.hold_covers(p_of text, out covers bigint, out bytes bigint) language plpgsql
  security definer set search_path = pg_catalog, public as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('longbox covers of ' || p_of || ' ' || app.tenant(), 0));
  if p_of = 'series' then
    select count(*), coalesce(sum(c.size), 0) into covers, bytes from public.series_cover c where c.tenant_id = app.tenant();
  else
    select count(*), coalesce(sum(c.size), 0) into covers, bytes from public.book_cover c where c.tenant_id = app.tenant();
  end if;
end $$;
-- +goose StatementEnd
revoke execute on function app.hold_covers(text) from public;
grant execute on function app.hold_covers(text) to longbox_app, longbox_limited, longbox_system;

create table book_genre (
  tenant_id uuid not null,
  book_id   uuid not null,
  genre_id  uuid not null,
  primary key (tenant_id, book_id, genre_id),
  foreign key (tenant_id, book_id) references book on delete cascade,
  foreign key (tenant_id, genre_id) references genre on delete cascade
);
create index book_genre_genre on book_genre (tenant_id, genre_id);
call app.protect('book_genre');
call app.limit_books('book_genre');

create table book_tag (
  tenant_id uuid not null,
  book_id   uuid not null,
  tag_id    uuid not null,
  primary key (tenant_id, book_id, tag_id),
  foreign key (tenant_id, book_id) references book on delete cascade,
  foreign key (tenant_id, tag_id) references tag on delete cascade
);
create index book_tag_tag on book_tag (tenant_id, tag_id);
call app.protect('book_tag');
call app.limit_books('book_tag');

-- allowed_terms are the genres or tags (p_table) that the series or books (p_of) have which the user sees who is allowed
-- sharing tags: from the few series that carry these, where the policies would look through all that is hidden.
-- Nothing, for anybody else.
-- +goose StatementBegin
create function app.allowed_terms(p_of text, p_table text) returns setof uuid language plpgsql stable
  security definer set search_path = pg_catalog, public as $$
begin
  if app.allowed() is null then
    return;
  end if;
  return query execute format($q$with seen as materialized (
      select distinct s.series_id from public.series_sharing_tag s where s.tenant_id = app.tenant() and s.sharing_tag_id = any(app.allowed()) and %s)
    select distinct x.id from seen cross join lateral (%s offset 0) x$q$, app.visible('s.series_id'),
    format(case p_of when 'series' then 'select x.%1$I as id from public.%2$I x where x.tenant_id = app.tenant() and x.series_id = seen.series_id'
      else 'select x.%1$I as id from public.book b join public.%2$I x on x.tenant_id = b.tenant_id and x.book_id = b.id
        where b.tenant_id = app.tenant() and b.series_id = seen.series_id' end,
      case p_table when 'genre' then 'genre_id' else 'tag_id' end,
      case p_of when 'series' then 'series_' else 'book_' end || case p_table when 'genre' then 'genre' else 'tag' end));
end $$;
-- +goose StatementEnd
revoke execute on function app.allowed_terms(text, text) from public;
grant execute on function app.allowed_terms(text, text) to longbox_app, longbox_limited, longbox_system;

-- As 00054 has it; what a book has is used, too.
-- +goose StatementBegin
create or replace function app.clean_terms(p_table text) returns setof text language plpgsql as $$
declare
  v_unused constant text := format('t.tenant_id = app.tenant() and not exists (select from public.series_%1$s x where x.tenant_id = t.tenant_id and x.%1$s_id = t.id)
    and not exists (select from public.book_%1$s x where x.tenant_id = t.tenant_id and x.%1$s_id = t.id)', p_table);
  v_ids uuid[];
begin
  execute format('select array(select t.id from public.%I t where %s order by lower(t.name) for update)', p_table, v_unused) into v_ids;
  return query execute format('delete from public.%I t where %s and t.id = any($1) returning t.name', p_table, v_unused) using v_ids;
end $$;
-- +goose StatementEnd

-- names_in are the names that a book's metadata has in a field, as names are compared.
create function app.names_in(p_metadata jsonb, p_field text) returns setof text language sql immutable parallel safe as $$
  select lower(btrim(n)) from jsonb_array_elements_text(case jsonb_typeof(p_metadata -> p_field) when 'array' then p_metadata -> p_field else '[]' end) n
$$;

-- hold_terms keeps the genres or tags (p_table) of some names, in lower case, until the transaction ends. Whoever takes
-- them from books calls it first: who deletes one locks it before what the books have of it.
-- +goose StatementBegin
create function app.hold_terms(p_table text, p_names text[]) returns void language plpgsql as $$
begin
  execute format('select from public.%I t where t.tenant_id = app.tenant() and lower(t.name) = any($1) order by lower(t.name) for key share', p_table) using p_names;
end $$;
-- +goose StatementEnd

-- Tenants whose books have not all got what their files named before there were genres and tags of books, and the last
-- book that has.
create table term_fill (
  tenant_id uuid primary key references tenant on delete cascade,
  after     uuid not null default '00000000-0000-0000-0000-000000000000'
);
call app.protect('term_fill', true); -- the scheduler looks for them
insert into term_fill (tenant_id) select id from tenant;

-- fill_terms gives the next p_books books of the tenant what their files name.
-- +goose StatementBegin
create function app.fill_terms(p_books integer) returns void language plpgsql as $$
declare
  v_after uuid := (select f.after from public.term_fill f where f.tenant_id = app.tenant() for update);
  v_books uuid[] := array(select m.book_id from public.book_metadata m where m.tenant_id = app.tenant() and m.book_id > v_after order by m.book_id limit p_books);
  v record;
begin
  perform from public.library_count c where c.tenant_id = app.tenant() order by c.library_id for update; -- as scans do
  perform from public.book b where b.tenant_id = app.tenant() and b.id = any(v_books) order by b.id for no key update;
  for v in select * from (values ('genre', 'genres'), ('tag', 'tags')) x(kind, field) loop
    perform app.hold_terms(v.kind, array(select n from public.book_metadata m cross join lateral app.names_in(m.metadata, v.field) n
      where m.tenant_id = app.tenant() and m.book_id = any(v_books)));
    execute format('insert into public.book_%1$s (tenant_id, book_id, %1$s_id)
      select m.tenant_id, m.book_id, t.id from public.book_metadata m
      cross join lateral app.names_in(m.metadata, $2) n join public.%1$s t on t.tenant_id = m.tenant_id and lower(t.name) = n
      where m.tenant_id = app.tenant() and m.book_id = any($1) and not $2 || ''Lock'' = any(m.locks) on conflict do nothing', v.kind) using v_books, v.field;
  end loop;
  if cardinality(v_books) < p_books then
    delete from public.term_fill f where f.tenant_id = app.tenant();
  else
    update public.term_fill f set after = v_books[p_books] where f.tenant_id = app.tenant();
  end if;
end $$;
-- +goose StatementEnd

-- take_names gives books (p_to) the genres and tags that the files of others (p_from) name, whose metadata they are to
-- take over, in the place of those that their own name; what is locked stays.
-- +goose StatementBegin
create function app.take_names(p_from uuid[], p_to uuid[]) returns void language plpgsql as $$
declare
  v record;
begin
  if p_to is null then
    return;
  end if;
  for v in select * from (values ('genre', 'genres'), ('tag', 'tags')) x(kind, field) loop
    perform app.hold_terms(v.kind, array(select n from public.book_metadata m cross join lateral app.names_in(m.metadata, v.field) n
      where m.tenant_id = app.tenant() and m.book_id = any(p_from || p_to)));
    execute format('delete from public.book_%1$s x using public.book_metadata m, public.%1$s t
      where x.tenant_id = app.tenant() and x.book_id = any($1) and m.tenant_id = x.tenant_id and m.book_id = x.book_id and not $2 || ''Lock'' = any(m.locks)
        and t.tenant_id = x.tenant_id and t.id = x.%1$s_id and lower(t.name) in (select app.names_in(m.metadata, $2))', v.kind) using p_to, v.field;
    execute format('insert into public.book_%1$s (tenant_id, book_id, %1$s_id)
      select c.tenant_id, u.heir, t.id from unnest($1, $2) as u(id, heir)
      join public.book_metadata c on c.tenant_id = app.tenant() and c.book_id = u.id
      join public.book_metadata m on m.tenant_id = c.tenant_id and m.book_id = u.heir and not $3 || ''Lock'' = any(m.locks)
      cross join lateral app.names_in(c.metadata, $3) n join public.%1$s t on t.tenant_id = c.tenant_id and lower(t.name) = n
      on conflict do nothing', v.kind) using p_from, p_to, v.field;
  end loop;
end $$;
-- +goose StatementEnd

-- As 00050 has it, with the call of take_names.
-- +goose StatementBegin
create or replace function app.follow_content(p_library uuid, p_scan uuid, p_gone uuid[], p_came uuid[], p_changed uuid[])
returns table (what text, id uuid, was uuid, series_id uuid, came_series uuid, left_series uuid, left_gone boolean, again text) language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_since constant timestamptz := app.follow_since(p_library, p_scan);
  v_scans constant timestamptz := app.scans_since(p_library, p_scan);
  v_scan timestamptz := (select t.created_at from public.task t where t.tenant_id = v_tenant and t.id = p_scan);
  v_same_size boolean;
  v_by_name boolean;
  v_second boolean[];      -- of v_ids: what came into the file of a book that is gone, where it had other content since v_since
  v_staying uuid[];        -- books that follow that
  v_ids uuid[];
  v_prints text[];
  v_sizes bigint[];
  v_places uuid[];
  v_who uuid[] := '{}';    -- books that follow
  v_where uuid[] := '{}';  -- the books in whose places they come
  v_old public.book[];
  v_new public.book[];
  v_strayed uuid[];        -- of all these, those whose file has other content
  v_unsure uuid[];         -- those of which not all is what their files say
  v_fresh uuid[];
  v_ousted uuid[];
  v_left uuid[];           -- books that follow and whose places nobody takes
  v_added uuid[];
  v_index public.page_index[];
  v_page public.page_index;
  v_dropped uuid[];
  v_pair record;
begin
  with content as materialized (
    select d.fingerprint from public.displaced d
      where d.tenant_id = v_tenant and d.book_id = any(p_gone || p_changed) and d.library_id = p_library and d.at >= v_since
    union
    select b.fingerprint from public.book b
      where b.tenant_id = v_tenant and b.id = any(p_gone || p_came || p_changed) and b.library_id = p_library and b.fingerprint <> ''),
  who as (
    select d.book_id as id, d.fingerprint, d.size, false as second from content c
      join public.displaced d on d.tenant_id = v_tenant and d.library_id = p_library and d.fingerprint = c.fingerprint and d.at >= v_since
    union all
    select b.id, b.fingerprint, b.size, exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = b.id and d.at >= v_since) from content c
      join public.book b on b.tenant_id = v_tenant and b.library_id = p_library and b.fingerprint = c.fingerprint and b.fingerprint <> '' and b.deleted_at is not null
      where p_gone is null or b.id = any(p_gone))
  select array_agg(w.id), array_agg(w.fingerprint), array_agg(w.size), array_agg(w.second) into v_ids, v_prints, v_sizes, v_second from who w;
  if v_ids is null then
    return;
  end if;
  select array_agg(n.id) into v_places
    from (select distinct fingerprint from unnest(v_prints) as u(fingerprint)) c
    join public.book n on n.tenant_id = v_tenant and n.library_id = p_library and n.fingerprint = c.fingerprint and n.fingerprint <> ''
    where n.deleted_at is null and n.analyzed and (
      exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = n.id and d.at >= v_since)
      or (n.id = any(p_came) or coalesce(n.first_read_at, n.created_at) >= v_since
          and (coalesce(n.first_read_at, n.created_at) >= v_scans or not exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = n.id)))
        and not exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = n.id and m.locks <> '{}'));
  for v_pass in 1..16 loop -- the file's own content before what came into it, the same size before another, dear before not, the same name first
    v_same_size := v_pass % 8 in (1, 2, 3, 4);
    v_by_name := v_pass % 2 = 1;
    with who as (
      select b.id, b.key, u.fingerprint, x.size, x.name, row_number() over (partition by u.fingerprint, x.size, x.name order by b.deleted_at is null,
          case when b.deleted_at is not null then (select count(*) from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id) end desc, b.key) as turn
      from unnest(v_ids, v_prints, v_sizes, v_second) as u(id, fingerprint, size, second)
      join public.book b on b.tenant_id = v_tenant and b.id = u.id
      cross join lateral (select case when v_same_size then u.size else 0 end as size, case when v_by_name then substring(b.key from '[^/]*$') else '' end as name) x
      where b.id <> all(v_who) and u.second = (v_pass > 8) and (v_pass % 4 in (1, 2)) = (
          exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id)
          or exists (select from public.completion c where c.tenant_id = v_tenant and c.book_id = b.id)
          or exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> '{}'))),
    place as (
      select b.id, b.fingerprint, x.size, x.name, row_number() over (partition by b.fingerprint, x.size, x.name order by b.key collate natural_order, b.key) as place
      from public.book b
      cross join lateral (select case when v_same_size then b.size else 0 end as size, case when v_by_name then substring(b.key from '[^/]*$') else '' end as name) x
      where b.tenant_id = v_tenant and b.id = any(v_places) and b.id <> all(v_where)),
    chosen as (
      select w.id, w.fingerprint, w.size, w.name, row_number() over (partition by w.fingerprint, w.size, w.name order by w.key collate natural_order, w.key) as place
      from who w join (select p.fingerprint, p.size, p.name, count(*) as places from place p group by 1, 2, 3) r using (fingerprint, size, name) where w.turn <= r.places)
    select v_who || coalesce(array_agg(chosen.id), '{}'), v_where || coalesce(array_agg(place.id), '{}') into v_who, v_where
      from chosen join place using (fingerprint, size, name, place);
    exit when v_pass = 8 and not true = any(v_second);
  end loop;
  if v_who = '{}' then
    return;
  end if;
  -- What readers write until here goes along, and who locks a field of the book of a place keeps it there; later writes find it gone.
  perform from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where) order by b.id for update;
  select array_agg(u.who), array_agg(u.place) into v_who, v_where from unnest(v_who, v_where) as u(who, place)
    where exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = u.place and d.at >= v_since)
      or not exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = u.place and m.locks <> '{}');
  if v_who is null then
    return;
  end if;
  v_staying := array(select u.id from unnest(v_ids, v_prints, v_sizes, v_second) as u(id, fingerprint, size, second) join unnest(v_who, v_where) as t(who, place) on t.who = u.id
    join public.book n on n.tenant_id = v_tenant and n.id = t.place and n.fingerprint = u.fingerprint where u.second);

  v_old := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_who));
  v_new := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_where));
  v_strayed := array(select d.book_id from public.displaced d where d.tenant_id = v_tenant and d.book_id = any(v_who || v_where) and d.at >= v_since);
  v_unsure := v_strayed || array(select o.id from unnest(v_old) o where not o.analyzed)
    || array(select x.book_id from public.page_index x where x.tenant_id = v_tenant and x.book_id = any(v_who || v_where) and x.revision < 0)
    || array(select o.id from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
      where o.size <> n.size or o.etag <> n.etag or o.etag = '' and o.modified_at <> n.modified_at); -- written anew, perhaps with other metadata
  v_fresh := array(select u from unnest(v_where) u where u <> all(v_strayed));
  v_ousted := array(select u from unnest(v_where) u where u = any(v_strayed) and u <> all(v_who));
  v_left := array(select o.id from unnest(v_old) o where o.deleted_at is null and o.id <> all(v_where));
  v_added := array(select gen_random_uuid() from unnest(v_left));

  v_index := array(select x from public.page_index x where x.tenant_id = v_tenant and x.book_id = any(v_where || v_left));
  delete from public.page_index x where x.tenant_id = v_tenant and x.book_id = any(v_who || v_where);
  insert into public.progress as p (tenant_id, account_id, book_id, id, current_page, percentage, completed, completed_at, started_at, updated_at)
    select c.tenant_id, c.account_id, u.who, c.id, c.current_page, c.percentage, c.completed, c.completed_at, c.started_at, c.updated_at
    from unnest(v_who, v_where) as u(who, place) join public.progress c on c.tenant_id = v_tenant and c.book_id = u.place
    where u.place = any(v_fresh)
    on conflict (tenant_id, account_id, book_id) do update set current_page = excluded.current_page, percentage = excluded.percentage,
      completed = excluded.completed, completed_at = excluded.completed_at, updated_at = excluded.updated_at
    where p.updated_at < excluded.updated_at;
  update public.reading_session s set book_id = u.who, pass = s.pass + coalesce((select max(h.pass) - 1
      from public.reading_session h where h.tenant_id = v_tenant and h.account_id = s.account_id and h.book_id = u.who), 0)
    from unnest(v_who, v_where) as u(who, place)
    where s.tenant_id = v_tenant and s.book_id = u.place and u.place = any(v_fresh);
  update public.completion c set book_id = u.who from unnest(v_who, v_where) as u(who, place)
    where c.tenant_id = v_tenant and c.book_id = u.place and u.place = any(v_fresh) and not exists (select from public.completion o
      where o.tenant_id = v_tenant and o.account_id = c.account_id and o.book_id = u.who and o.completed_at = c.completed_at);
  perform app.take_names(array_agg(u.place), array_agg(u.who))
    from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
    where num_nonnulls(o.sidecar, n.sidecar) > 0 or v_unsure && array[o.id, n.id]; -- as below, of which these are part
  perform app.hand_books(array_agg(u.place), array_agg(u.who)) from unnest(v_who, v_where) as u(who, place) where u.place = any(v_fresh);
  update public.book_metadata m set metadata = app.keep_locked(c.metadata, m.metadata, m.locks), warnings = c.warnings, updated_at = now()
    from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
    join public.book_metadata c on c.tenant_id = v_tenant and c.book_id = u.place
    where m.tenant_id = v_tenant and m.book_id = u.who
      and (num_nonnulls(o.sidecar, n.sidecar) > 0 or v_unsure && array[o.id, n.id]); -- else the file says what it said
  delete from public.external_link x where x.tenant_id = v_tenant and x.book_id = any(v_strayed) and x.source_name = 'comicinfo';
  delete from public.external_id x where x.tenant_id = v_tenant and x.book_id = any(v_strayed) and x.source in ('epub', 'pdf', 'opf');
  update public.progress p set current_page = (d.pages ->> p.account_id::text)::integer
    from public.displaced d where d.tenant_id = v_tenant and d.book_id = any(v_who || v_ousted) and d.book_id <> all(v_staying) and d.at >= v_since
      and p.tenant_id = v_tenant and p.book_id = d.book_id and d.pages ? p.account_id::text and p.updated_at <= d.at;

  update public.book b set key = b.key || '~' || b.id where b.tenant_id = v_tenant and b.id = any(v_who || v_where); -- each makes room for the others
  insert into public.book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, fingerprint, title, title_sort, search_title, number,
      reading_direction, page_count, analyzed, error_type, error_message, error_at, seen_at, deleted_at)
    select v_tenant, u.added, p_library, o.series_id, o.key, o.size, o.etag, o.modified_at, o.format, case when o.analyzed then o.fingerprint else '' end, n.name, n.name, lower(n.name),
      case when exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = o.id and 'numberLock' = any(m.locks)) then null else o.number end,
      o.reading_direction, case when o.analyzed then o.page_count else 0 end, o.analyzed, o.error_type, o.error_message, o.error_at, o.seen_at, now()
    from unnest(v_left, v_added) as u(id, added) join unnest(v_old) o on o.id = u.id
    cross join lateral (select regexp_replace(substring(o.key from '[^/]*$'), '\.[^.]*$', '') as name) n;
  update public.book k set key = n.key, series_id = n.series_id, size = n.size, etag = n.etag, modified_at = n.modified_at, seen_at = n.seen_at,
      format = n.format, fingerprint = n.fingerprint, sidecar = n.sidecar, reading_direction = n.reading_direction, page_count = n.page_count, analyzed = n.analyzed,
      title = case when 'titleLock' = any(l.locks) then k.title else n.title end,
      search_title = case when 'titleLock' = any(l.locks) then k.search_title else n.search_title end,
      title_sort = case when 'titleSortLock' = any(l.locks) then k.title_sort else n.title_sort end,
      number = case when 'numberLock' = any(l.locks) then k.number else n.number end,
      volume = case when 'volumeLock' = any(l.locks) then k.volume else n.volume end,
      chapter = case when 'chapterLock' = any(l.locks) then k.chapter else n.chapter end,
      error_type = null, error_message = null, error_at = null, revision = k.revision + 1, updated_at = now(), placed_at = now()
    from unnest(v_who, v_where) as u(who, place) join unnest(v_new) n on n.id = u.place
    cross join lateral (select coalesce((select m.locks from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = u.who), '{}') as locks) l
    where k.tenant_id = v_tenant and k.id = u.who;
  update public.book b set fingerprint = d.fingerprint, size = d.size, page_count = d.page_count, number = case when 'numberLock' = any(l.locks) then b.number end, sidecar = null, analyzed = false,
      error_type = null, error_message = null, error_at = null, revision = b.revision + 1, updated_at = now()
    from public.displaced d
    cross join lateral (select coalesce((select m.locks from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = d.book_id), '{}') as locks) l
    where b.tenant_id = v_tenant and b.id = any(v_ousted) and d.tenant_id = v_tenant and d.book_id = b.id;
  -- As many come as go, in one statement: a tenant that has more books than its limit by now may keep them all.
  update public.book b set deleted_at = case when b.id = any(v_who || v_added) then null else now() end
    where b.tenant_id = v_tenant and b.id = any(v_who || v_added || v_where);
  delete from public.book b where b.tenant_id = v_tenant and b.id = any(v_fresh);
  foreach v_page in array v_index loop
    select b.id, case when b.id = any(v_added) or v_unsure && array[u.id, b.id] then -1 else b.revision end into v_page.book_id, v_page.revision
      from unnest(v_where || v_left, v_who || v_added) as u(id, taker) join public.book b on b.tenant_id = v_tenant and b.id = u.taker
      where u.id = v_page.book_id;
    insert into public.page_index values (v_page.*);
  end loop;

  update public.scan s set books_moved = s.books_moved + cardinality(v_who),
      books_created = greatest(s.books_created + cardinality(v_added) - c.created, 0),
      books_updated = greatest(s.books_updated - c.updated, 0),
      books_deleted = greatest(s.books_deleted + cardinality(v_ousted) - c.deleted, 0)
    from (select (select count(*) from unnest(v_new) n where n.id = any(v_fresh) and n.created_at >= v_scan) as created,
      (select count(*) from public.displaced d where d.tenant_id = v_tenant and d.book_id = any(v_strayed) and d.at >= v_scan) as updated,
      (select count(*) from unnest(v_old) o where o.deleted_at >= v_scan) as deleted) c
    where s.tenant_id = v_tenant and s.id = p_scan;
  delete from public.displaced d where d.tenant_id = v_tenant and d.book_id = any(v_who || v_ousted) and d.book_id <> all(v_staying);

  for v_pair in
    select o.series_id as old_series, n.series_id as new_series
    from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
    where o.series_id <> n.series_id group by 1, 2 order by count(*) desc, min(n.key)
  loop
    perform app.replace_series(p_scan, v_pair.old_series, v_pair.new_series, v_since);
  end loop;
  v_dropped := array(select app.drop_empty_series(array(select o.series_id from unnest(v_old) o)));
  return query
    select 'moved', k.id, case when n.id = any(v_fresh) then n.id end, k.series_id, n.series_id, o.series_id, o.series_id = any(v_dropped),
      case when v_unsure && array[o.id, n.id] then k.key end
    from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
    join public.book k on k.tenant_id = v_tenant and k.id = u.who
    union all
    select case when k.deleted_at is null then 'added' else 'gone' end, k.id, null, k.series_id, k.series_id, k.series_id, false,
      case when k.deleted_at is null and k.error_type is null then k.key end
    from public.book k where k.tenant_id = v_tenant and k.id = any(v_added || v_ousted)
    order by 1, 2;
end $$;
-- +goose StatementEnd

-- As 00054 has it, with covers, and with the genres and tags that are not locked.
-- +goose StatementBegin
create or replace function app.hand_books(p_from uuid[], p_to uuid[]) returns void language sql as $$
  insert into public.wanted (tenant_id, account_id, id, book_id, place, added_at)
    select w.tenant_id, w.account_id, gen_random_uuid(), u.heir, w.place, w.added_at from unnest(p_from, p_to) as u(id, heir)
    join public.wanted w on w.tenant_id = app.tenant() and w.book_id = u.id on conflict do nothing;
  insert into public.collection_member (tenant_id, id, collection_id, book_id, place, added_at)
    select m.tenant_id, gen_random_uuid(), m.collection_id, u.heir, m.place, m.added_at from unnest(p_from, p_to) as u(id, heir)
    join public.collection_member m on m.tenant_id = app.tenant() and m.book_id = u.id on conflict do nothing;
  insert into public.external_id (tenant_id, id, book_id, source, external_id, external_url, metadata_hash, last_synced_at, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), u.heir, x.source, x.external_id, x.external_url, x.metadata_hash, x.last_synced_at, x.created_at, x.updated_at
    from unnest(p_from, p_to) as u(id, heir) join public.external_id x on x.tenant_id = app.tenant() and x.book_id = u.id
    where x.source not in ('epub', 'pdf', 'opf') on conflict do nothing;
  insert into public.external_link (tenant_id, id, book_id, source_name, url, external_id, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), u.heir, x.source_name, x.url, x.external_id, x.created_at, x.updated_at
    from unnest(p_from, p_to) as u(id, heir) join public.external_link x on x.tenant_id = app.tenant() and x.book_id = u.id
    where x.source_name <> 'comicinfo' on conflict do nothing;
  update public.book_cover c set book_id = u.heir from unnest(p_from, p_to) as u(id, heir)
    where c.tenant_id = app.tenant() and c.book_id = u.id
      and not exists (select from public.book_cover o where o.tenant_id = c.tenant_id and o.book_id = u.heir and o.fingerprint = c.fingerprint);
  update public.book h set cover_source = 'custom:' || o.id from unnest(p_from, p_to) as u(id, heir)
    join public.book n on n.tenant_id = app.tenant() and n.id = u.id
    join public.book_cover c on c.tenant_id = n.tenant_id and n.cover_source = 'custom:' || c.id and c.book_id in (u.id, u.heir)
    join public.book_cover o on o.tenant_id = c.tenant_id and o.book_id = u.heir and o.fingerprint = c.fingerprint
    where h.tenant_id = n.tenant_id and h.id = u.heir and h.cover_source is null
      and not exists (select from public.book_metadata m where m.tenant_id = h.tenant_id and m.book_id = h.id and 'coverLock' = any(m.locks));
  insert into public.book_genre (tenant_id, book_id, genre_id)
    select x.tenant_id, u.heir, x.genre_id from unnest(p_from, p_to) as u(id, heir)
    join public.book_genre x on x.tenant_id = app.tenant() and x.book_id = u.id
    where not exists (select from public.book_metadata m where m.tenant_id = x.tenant_id and m.book_id = u.heir and 'genresLock' = any(m.locks))
    on conflict do nothing;
  insert into public.book_tag (tenant_id, book_id, tag_id)
    select x.tenant_id, u.heir, x.tag_id from unnest(p_from, p_to) as u(id, heir)
    join public.book_tag x on x.tenant_id = app.tenant() and x.book_id = u.id
    where not exists (select from public.book_metadata m where m.tenant_id = x.tenant_id and m.book_id = u.heir and 'tagsLock' = any(m.locks))
    on conflict do nothing;
$$;
-- +goose StatementEnd

-- +goose Down
set local lock_timeout = '5s';
-- follow_content stays, and takes over no names: the tables go next.
create or replace function app.take_names(p_from uuid[], p_to uuid[]) returns void language sql as '';
drop function app.fill_terms, app.allowed_terms, app.hold_covers, app.hold_terms, app.names_in;
-- The others go back to what 00054 has.
-- +goose StatementBegin
create or replace function app.hand_books(p_from uuid[], p_to uuid[]) returns void language sql as $$
  insert into public.wanted (tenant_id, account_id, id, book_id, place, added_at)
    select w.tenant_id, w.account_id, gen_random_uuid(), u.heir, w.place, w.added_at from unnest(p_from, p_to) as u(id, heir)
    join public.wanted w on w.tenant_id = app.tenant() and w.book_id = u.id on conflict do nothing;
  insert into public.collection_member (tenant_id, id, collection_id, book_id, place, added_at)
    select m.tenant_id, gen_random_uuid(), m.collection_id, u.heir, m.place, m.added_at from unnest(p_from, p_to) as u(id, heir)
    join public.collection_member m on m.tenant_id = app.tenant() and m.book_id = u.id on conflict do nothing;
  insert into public.external_id (tenant_id, id, book_id, source, external_id, external_url, metadata_hash, last_synced_at, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), u.heir, x.source, x.external_id, x.external_url, x.metadata_hash, x.last_synced_at, x.created_at, x.updated_at
    from unnest(p_from, p_to) as u(id, heir) join public.external_id x on x.tenant_id = app.tenant() and x.book_id = u.id
    where x.source not in ('epub', 'pdf', 'opf') on conflict do nothing;
  insert into public.external_link (tenant_id, id, book_id, source_name, url, external_id, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), u.heir, x.source_name, x.url, x.external_id, x.created_at, x.updated_at
    from unnest(p_from, p_to) as u(id, heir) join public.external_link x on x.tenant_id = app.tenant() and x.book_id = u.id
    where x.source_name <> 'comicinfo' on conflict do nothing;
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function app.clean_terms(p_table text) returns setof text language plpgsql as $$
declare
  v_unused constant text := format('t.tenant_id = app.tenant() and not exists (select from public.series_%1$s x where x.tenant_id = t.tenant_id and x.%1$s_id = t.id)', p_table);
  v_ids uuid[];
begin
  execute format('select array(select t.id from public.%I t where %s order by lower(t.name) for update)', p_table, v_unused) into v_ids;
  return query execute format('delete from public.%I t where %s and t.id = any($1) returning t.name', p_table, v_unused) using v_ids;
end $$;
-- +goose StatementEnd
drop index series_cover_size;
drop table term_fill, book_tag, book_genre, book_cover;
alter table book drop column cover_source;
