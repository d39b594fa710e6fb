-- What follows from other data stays true: after a library's coverage has changed, and after books and series have moved.

-- +goose Up
set local lock_timeout = '5s';
-- reshaped_at is when what the library covers has changed last. A scan that began before has not looked at all of it.
alter table library add column if not exists reshaped_at timestamptz;
-- +goose StatementBegin
create or replace function app.note_reshaped() returns trigger language plpgsql as $$
begin
  -- Of a change that waited for a lock, the time after it. No scan is running in a library that is not active, and the one
  -- that its activation starts has the time of this transaction.
  new.reshaped_at := case when old.is_active then clock_timestamp() else now() end;
  return new;
end $$;
-- +goose StatementEnd
create trigger library_reshaped before update of path, bucket, prefix, excluded_patterns, allowed_formats on library for each row
  when ((old.path, old.bucket, old.prefix, old.excluded_patterns, old.allowed_formats)
    is distinct from (new.path, new.bucket, new.prefix, new.excluded_patterns, new.allowed_formats))
  execute function app.note_reshaped();

-- As 00086 has it; a series that shows the cover of a book goes on showing it when that turns out to be another one.
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
  update public.series s set cover_source = 'book:' || u.heir from unnest(p_from, p_to) as u(id, heir)
    join public.book n on n.tenant_id = app.tenant() and n.id = u.id
    where s.tenant_id = n.tenant_id and s.id = n.series_id and s.cover_source = 'book:' || u.id;
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
  delete from public.book_heir where tenant_id = app.tenant() and id = any(array(select h.id from public.book_heir h
    where h.tenant_id = app.tenant() and h.at < now() - interval '90 days' for update skip locked)); -- whoever else forgets them
  update public.book_heir h set book_id = u.heir from unnest(p_from, p_to) as u(id, heir) where h.tenant_id = app.tenant() and h.book_id = u.id;
  insert into public.book_heir (tenant_id, id, book_id) select app.tenant(), u.id, u.heir from unnest(p_from, p_to) as u(id, heir)
    on conflict (tenant_id, id) do update set book_id = excluded.book_id, at = excluded.at;
$$;
-- +goose StatementEnd

-- As 00103 has it; a lock of titleSort without a value keeps no old one, and a book made for a damaged file is found by its title.
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
  v_taken record;
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
    exit when v_pass = 8 and not true = any(v_second)
      or cardinality(v_who) = cardinality(v_ids) or cardinality(v_where) = cardinality(v_places); -- nobody, or nothing, is left
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
  v_fresh := array(select u from unnest(v_where) u where u not in (select unnest(v_strayed)));
  v_ousted := array(select u from unnest(v_where) u where u in (select unnest(v_strayed)) and u not in (select unnest(v_who)));
  v_left := array(select o.id from unnest(v_old) o where o.deleted_at is null and o.id not in (select unnest(v_where)));
  v_added := array(select gen_random_uuid() from unnest(v_left));

  v_index := array(select x from public.page_index x where x.tenant_id = v_tenant and x.book_id = any(v_where || v_left));
  delete from public.page_index x where x.tenant_id = v_tenant and x.book_id = any(v_who || v_where);
  insert into public.progress as p (tenant_id, account_id, book_id, id, current_page, percentage, completed, completed_at, started_at, updated_at)
    select c.tenant_id, c.account_id, u.who, c.id, c.current_page, c.percentage, c.completed, c.completed_at, c.started_at, c.updated_at
    from unnest(v_who, v_where) as u(who, place) join public.progress c on c.tenant_id = v_tenant and c.book_id = u.place
    where u.place in (select unnest(v_fresh))
    on conflict (tenant_id, account_id, book_id) do update set current_page = excluded.current_page, percentage = excluded.percentage,
      completed = excluded.completed, completed_at = excluded.completed_at, updated_at = excluded.updated_at
    where p.updated_at < excluded.updated_at;
  update public.completion c set book_id = u.who, pass = c.pass + coalesce((select max(h.pass) - 1
      from public.reading_session h where h.tenant_id = v_tenant and h.account_id = c.account_id and h.book_id = u.who), 0)
    from unnest(v_who, v_where) as u(who, place)
    where c.tenant_id = v_tenant and c.book_id = u.place and u.place in (select unnest(v_fresh)) and not exists (select from public.completion o
      where o.tenant_id = v_tenant and o.account_id = c.account_id and o.book_id = u.who and o.completed_at = c.completed_at);
  update public.reading_session s set book_id = u.who, pass = s.pass + coalesce((select max(h.pass) - 1
      from public.reading_session h where h.tenant_id = v_tenant and h.account_id = s.account_id and h.book_id = u.who), 0)
    from unnest(v_who, v_where) as u(who, place)
    where s.tenant_id = v_tenant and s.book_id = u.place and u.place in (select unnest(v_fresh));
  perform app.take_names(array_agg(u.place), array_agg(u.who))
    from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
    where num_nonnulls(o.sidecar, n.sidecar) > 0 or o.id in (select unnest(v_unsure)) or n.id in (select unnest(v_unsure)); -- as below, of which these are part
  perform app.hand_books(array_agg(u.place), array_agg(u.who)) from unnest(v_who, v_where) as u(who, place) where u.place in (select unnest(v_fresh));
  update public.book_metadata m set metadata = app.keep_locked(c.metadata, m.metadata, m.locks || case when 'titleLock' = any(m.locks) then '{titleSortLock}' else '{}' end::text[]), warnings = c.warnings, updated_at = now()
    from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
    join public.book_metadata c on c.tenant_id = v_tenant and c.book_id = u.place
    where m.tenant_id = v_tenant and m.book_id = u.who
      and (num_nonnulls(o.sidecar, n.sidecar) > 0 or o.id in (select unnest(v_unsure)) or n.id in (select unnest(v_unsure))); -- else the file says what it said
  delete from public.external_link x where x.tenant_id = v_tenant and x.book_id = any(v_strayed) and x.source_name = 'comicinfo';
  delete from public.external_id x where x.tenant_id = v_tenant and x.book_id = any(v_strayed) and x.source in ('epub', 'pdf', 'opf');
  update public.progress p set current_page = (d.pages ->> p.account_id::text)::integer
    from public.displaced d where d.tenant_id = v_tenant and d.book_id = any(v_who || v_ousted) and d.book_id <> all(v_staying) and d.at >= v_since
      and p.tenant_id = v_tenant and p.book_id = d.book_id and d.pages ? p.account_id::text and p.updated_at <= d.at;

  update public.book b set key = b.key || '~' || b.id where b.tenant_id = v_tenant and b.id = any(v_who || v_where); -- each makes room for the others
  insert into public.book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, fingerprint, title, title_sort, search_title, number,
      reading_direction, page_count, analyzed, error_type, error_message, error_at, seen_at, deleted_at)
    select v_tenant, u.added, p_library, o.series_id, o.key, o.size, o.etag, o.modified_at, o.format, case when o.analyzed then o.fingerprint else '' end, normalize(n.name), normalize(n.name), app.search_form(n.name),
      case when exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = o.id and 'numberLock' = any(m.locks)) then null else o.number end,
      o.reading_direction, case when o.analyzed then o.page_count else 0 end, o.analyzed, o.error_type, o.error_message, o.error_at, o.seen_at, now()
    from unnest(v_left, v_added) as u(id, added) join unnest(v_old) o on o.id = u.id
    cross join lateral (select regexp_replace(substring(o.key from '[^/]*$'), '\.[^.]*$', '') as name) n;
  update public.book k set key = n.key, series_id = n.series_id, size = n.size, etag = n.etag, modified_at = n.modified_at, seen_at = n.seen_at,
      format = n.format, fingerprint = n.fingerprint, sidecar = n.sidecar, reading_direction = n.reading_direction, page_count = n.page_count, analyzed = n.analyzed,
      title = case when 'titleLock' = any(l.locks) then k.title else n.title end,
      search_title = case when 'titleLock' = any(l.locks) then k.search_title else n.search_title end,
      title_sort = case when 'titleLock' = any(l.locks) or 'titleSortLock' = any(l.locks) and l.sorted then k.title_sort
        when 'titleSortLock' = any(l.locks) then normalize(regexp_replace(n.title, '\s+', ' ', 'g')) else n.title_sort end, -- as book.SortTitleSQL
      number = case when 'numberLock' = any(l.locks) then k.number else n.number end,
      volume = case when 'volumeLock' = any(l.locks) then k.volume else n.volume end,
      chapter = case when 'chapterLock' = any(l.locks) then k.chapter else n.chapter end,
      error_type = null, error_message = null, error_at = null, revision = k.revision + 1, updated_at = now(), placed_at = now()
    from unnest(v_who, v_where) as u(who, place) join unnest(v_new) n on n.id = u.place
    cross join lateral (select coalesce((select m.locks from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = u.who), '{}') as locks,
      exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = u.who and m.metadata ? 'titleSort') as sorted) l
    where k.tenant_id = v_tenant and k.id = u.who;
  update public.book b set fingerprint = d.fingerprint, size = d.size, page_count = d.page_count, number = case when 'numberLock' = any(l.locks) then b.number end, sidecar = null, analyzed = false,
      error_type = null, error_message = null, error_at = null, revision = b.revision + 1, updated_at = now()
    from public.displaced d
    cross join lateral (select coalesce((select m.locks from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = d.book_id), '{}') as locks) l
    where b.tenant_id = v_tenant and b.id = any(v_ousted) and d.tenant_id = v_tenant and d.book_id = b.id;
  -- As many come as go, in one statement: a tenant that has more books than its limit by now may keep them all.
  update public.book b set deleted_at = case when b.id in (select unnest(v_who || v_added)) then null else now() end
    where b.tenant_id = v_tenant and b.id = any(v_who || v_added || v_where);
  delete from public.book b where b.tenant_id = v_tenant and b.id = any(v_fresh);
  for v_taken in
    select x as page, b.id, case when u.new or u.id in (select unnest(v_unsure)) or b.id in (select unnest(v_unsure)) then -1 else b.revision end as revision
    from (select t.id, t.taker, false as new from unnest(v_where, v_who) as t(id, taker)
        union all select t.id, t.taker, true from unnest(v_left, v_added) as t(id, taker)) u
      join unnest(v_index) x on x.book_id = u.id join public.book b on b.tenant_id = v_tenant and b.id = u.taker
  loop
    v_page := v_taken.page;
    v_page.book_id := v_taken.id;
    v_page.revision := v_taken.revision;
    insert into public.page_index values (v_page.*);
  end loop;

  update public.scan s set books_moved = s.books_moved + cardinality(v_who),
      books_created = greatest(s.books_created + cardinality(v_added) - c.created, 0),
      books_updated = greatest(s.books_updated - c.updated, 0),
      books_deleted = greatest(s.books_deleted + cardinality(v_ousted) - c.deleted, 0)
    from (select (select count(*) from unnest(v_new) n where n.id in (select unnest(v_fresh)) and n.created_at >= v_scan) as created,
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
  perform app.choose_heirs(array_agg(o.id), array_agg(o.series_id), v_since, null) from unnest(v_old) o;
  v_dropped := array(select app.drop_empty_series(array(select o.series_id from unnest(v_old) o)));
  return query
    select 'moved', k.id, case when n.id in (select unnest(v_fresh)) then n.id end, k.series_id, n.series_id, o.series_id, o.series_id = any(v_dropped),
      case when o.id in (select unnest(v_unsure)) or n.id in (select unnest(v_unsure)) then k.key end
    from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
    join public.book k on k.tenant_id = v_tenant and k.id = u.who
    union all
    select case when k.deleted_at is null then 'added' else 'gone' end, k.id, null, k.series_id, k.series_id, k.series_id, false,
      case when k.deleted_at is null and k.error_type is null then k.key end
    from public.book k where k.tenant_id = v_tenant and k.id = any(v_added || v_ousted)
    order by 1, 2;
end $$;
-- +goose StatementEnd

-- +goose Down
set local lock_timeout = '5s';
drop trigger library_reshaped on library;
drop function app.note_reshaped();
alter table library drop column reshaped_at;
