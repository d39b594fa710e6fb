-- Books follow their content (00008) also where a scan and announcements share the work, with the number that somebody has locked,
-- and with the metadata of a file that was written anew.

-- +goose Up

-- scans_since is since when books may have appeared or changed by scans that count as one with p_scan: the first one after the
-- last that was completed, since one that was cancelled leaves its work to the next. Null without a scan.
-- +goose StatementBegin
create function app.scans_since(p_library uuid, p_scan uuid) returns timestamptz language sql stable as $$
  select min(t.created_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and p_scan is not null and t.created_at > coalesce(
      (select max(c.created_at) from public.scan f join public.task c on c.tenant_id = f.tenant_id and c.id = f.id
        where f.tenant_id = app.tenant() and f.library_id = p_library and c.status = 'completed' and coalesce(c.params ->> 'path', '') = ''), '-infinity');
$$;
-- +goose StatementEnd

-- follow_since is how far back a book may have appeared or changed that another is found in, or whose own content is: an hour
-- where the store announces it; for a scan scans_since, and what was announced after the last one that was completed, within the
-- hour too: of two announcements that belong together one may be late, or never come.
-- +goose StatementBegin
create or replace function app.follow_since(p_library uuid, p_scan uuid) returns timestamptz language sql stable as $$
  select least(app.scans_since(p_library, p_scan), greatest(now() - interval '1 hour', case when p_scan is not null then
    (select max(c.completed_at) from public.scan f join public.task c on c.tenant_id = f.tenant_id and c.id = f.id
      where f.tenant_id = app.tenant() and f.library_id = p_library and c.status = 'completed' and coalesce(c.params ->> 'path', '') = '') end));
$$;
-- +goose StatementEnd

-- follow_content gives books the place where their content is now: books whose file is gone, or has other content since
-- follow_since, and files that appeared, or have this content since then. Content is fingerprint and size.
--
-- p_gone are books just marked deleted. Or p_came are books analysed for the first time, and p_changed those whose analysis
-- found other content (note_displaced). A file that p_came names may be of any book that is gone; one that was announced
-- earlier only while nobody has read it. A book that was made of a file and that somebody has locked a field of
-- stays itself.
--
-- Whose file had other content since follow_since and is gone then goes where the first of the two is, else where the second is.
--
-- Where several have the same content, those with the same file name belong together. Of the others those go on whose file
-- is gone, the most read of them first, then those whose file has other content; they keep the order of their keys.
--
-- A book takes the whole place: key, series, version of the file, page index. What becomes of the book that was there:
--   - made of the file since then, it goes, and its readers' progress comes over (was);
--   - it follows its own content in the same way;
--   - else its content is gone, and it is marked deleted under a key that no file has (what is 'gone').
-- A place whose book has left it and that no other takes has new content: a book is added for it ('added').
-- again is the key of a file whose book must be analysed again: its titles and metadata were stored, but for locked
-- fields of another book, or not at all. Until then its page index has the revision -1, in case the file moves on before.
--
-- It tells the books that follow ('moved') with the series of the place (came_series, gone where it is not series_id: the
-- series of the old place goes on under its path) and the one that was left (left_gone: and had no other book).
-- +goose StatementBegin
create or replace function app.follow_content(p_library uuid, p_scan uuid, p_gone uuid[], p_came uuid[], p_changed uuid[])
returns table (what text, id uuid, was uuid, series_id uuid, came_series uuid, left_series uuid, left_gone boolean, again text) language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_since constant timestamptz := app.follow_since(p_library, p_scan);
  v_scans constant timestamptz := app.scans_since(p_library, p_scan);
  v_scan timestamptz := (select t.created_at from public.task t where t.tenant_id = v_tenant and t.id = p_scan);
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
    select d.fingerprint, d.size from public.displaced d
      where d.tenant_id = v_tenant and d.book_id = any(p_gone || p_changed) and d.library_id = p_library and d.at >= v_since
    union
    select b.fingerprint, b.size from public.book b
      where b.tenant_id = v_tenant and b.id = any(p_gone || p_came || p_changed) and b.library_id = p_library and b.fingerprint <> ''),
  who as (
    select d.book_id as id, d.fingerprint, d.size, false as second from content c
      join public.displaced d on d.tenant_id = v_tenant and d.library_id = p_library and d.fingerprint = c.fingerprint and d.size = c.size and d.at >= v_since
    union all
    select b.id, b.fingerprint, b.size, exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = b.id and d.at >= v_since) from content c
      join public.book b on b.tenant_id = v_tenant and b.library_id = p_library and b.size = c.size and b.fingerprint = c.fingerprint and b.deleted_at is not null
      where p_gone is null or b.id = any(p_gone))
  select array_agg(w.id), array_agg(w.fingerprint), array_agg(w.size), array_agg(w.second) into v_ids, v_prints, v_sizes, v_second from who w;
  if v_ids is null then
    return;
  end if;
  select array_agg(n.id) into v_places
    from (select distinct * from unnest(v_prints, v_sizes) as u(fingerprint, size)) c
    join public.book n on n.tenant_id = v_tenant and n.library_id = p_library and n.fingerprint = c.fingerprint and n.size = c.size
    where n.deleted_at is null and n.analyzed and (
      exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = n.id and d.at >= v_since)
      or (n.id = any(p_came) or n.created_at >= v_since
          and (n.created_at >= v_scans or not exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = n.id)))
        and not exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = n.id and m.locks <> '{}'));
  for v_pass in 1..4 loop
    v_by_name := v_pass % 2 = 1;
    with who as (
      select b.id, b.key, u.fingerprint, u.size, n.name, row_number() over (partition by u.fingerprint, u.size, n.name order by b.deleted_at is null,
          case when b.deleted_at is not null then (select count(*) from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id) end desc, b.key) as turn
      from unnest(v_ids, v_prints, v_sizes, v_second) as u(id, fingerprint, size, second)
      join public.book b on b.tenant_id = v_tenant and b.id = u.id
      cross join lateral (select case when v_by_name then substring(b.key from '[^/]*$') else '' end as name) n
      where b.id <> all(v_who) and u.second = (v_pass > 2)),
    place as (
      select b.id, b.fingerprint, b.size, n.name, row_number() over (partition by b.fingerprint, b.size, n.name order by b.key collate natural_order, b.key) as place
      from public.book b cross join lateral (select case when v_by_name then substring(b.key from '[^/]*$') else '' end as name) n
      where b.tenant_id = v_tenant and b.id = any(v_places) and b.id <> all(v_where)),
    chosen as (
      select w.id, w.fingerprint, w.size, w.name, row_number() over (partition by w.fingerprint, w.size, w.name order by w.key collate natural_order, w.key) as place
      from who w join (select p.fingerprint, p.size, p.name, count(*) as places from place p group by 1, 2, 3) r using (fingerprint, size, name) where w.turn <= r.places)
    select v_who || coalesce(array_agg(chosen.id), '{}'), v_where || coalesce(array_agg(place.id), '{}') into v_who, v_where
      from chosen join place using (fingerprint, size, name, place);
    exit when v_pass = 2 and not true = any(v_second);
  end loop;
  if v_who = '{}' then
    return;
  end if;
  v_staying := array(select u.id from unnest(v_ids, v_prints, v_sizes, v_second) as u(id, fingerprint, size, second) join unnest(v_who, v_where) as t(who, place) on t.who = u.id
    join public.book n on n.tenant_id = v_tenant and n.id = t.place and n.fingerprint = u.fingerprint and n.size = u.size where u.second);

  v_old := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_who));
  v_new := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_where));
  v_strayed := array(select d.book_id from public.displaced d where d.tenant_id = v_tenant and d.book_id = any(v_who || v_where) and d.at >= v_since);
  v_unsure := v_strayed || array(select o.id from unnest(v_old) o where not o.analyzed)
    || array(select x.book_id from public.page_index x where x.tenant_id = v_tenant and x.book_id = any(v_who || v_where) and x.revision < 0)
    || array(select o.id from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
      where o.etag <> n.etag or o.etag = '' and o.modified_at <> n.modified_at); -- written anew, perhaps with other metadata in as many bytes
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
  update public.completion c set book_id = u.who from unnest(v_who, v_where) as u(who, place)
    where c.tenant_id = v_tenant and c.book_id = u.place and u.place = any(v_fresh) and not exists (select from public.completion o
      where o.tenant_id = v_tenant and o.account_id = c.account_id and o.book_id = u.who and o.completed_at = c.completed_at);
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
      error_type = null, error_message = null, error_at = null, revision = k.revision + 1, updated_at = now()
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

-- +goose Down
-- What is replaced here does all that it did before, and goes with 00008.
select 1;
