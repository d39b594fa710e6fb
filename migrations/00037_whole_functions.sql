-- The functions by which books follow their content: whole, since 00008 to 00035 changed parts of their text. New is that a file of another
-- size may have the content, as one that got a ComicInfo.xml or was packed anew while it was renamed. And next_to_send, which stopped at a tenant's limit of scans with room left in its window for other tasks.

-- +goose Up

-- note_displaced notes, before an analysis is stored, which books it finds with other content: with another fingerprint
-- (p_prints), or, where that is null since the file cannot be read, in another version than the one that was read. Who has
-- lost its content already has lost that; who has it again has lost nothing.
-- +goose StatementBegin
create or replace function app.note_displaced(p_scan uuid, p_books uuid[], p_revisions integer[], p_prints text[]) returns void language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_library uuid;
  v_since timestamptz;
begin
  for v_library in select distinct b.library_id from public.book b where b.tenant_id = v_tenant and b.id = any(p_books) loop
    v_since := app.follow_since(v_library, p_scan);
    delete from public.displaced d where d.tenant_id = v_tenant and d.library_id = v_library and d.at < least(v_since, now() - interval '1 hour');
    insert into public.displaced as d (tenant_id, book_id, library_id, fingerprint, size, page_count)
      select v_tenant, b.id, v_library, b.fingerprint, coalesce(x.file_size, -1), b.page_count
      from unnest(p_books, p_revisions, p_prints) as u(id, revision, print)
      join public.book b on b.tenant_id = v_tenant and b.id = u.id and b.revision = u.revision and b.library_id = v_library
      left join public.page_index x on x.tenant_id = v_tenant and x.book_id = b.id
      where b.fingerprint <> '' and case when u.print is null then (x.file_size, x.file_etag, x.file_modified) is distinct from (b.size, b.etag, b.modified_at)
        else u.print <> b.fingerprint end
      on conflict (tenant_id, book_id) do update set fingerprint = excluded.fingerprint, size = excluded.size,
        page_count = excluded.page_count, pages = '{}', at = now()
      where d.at < greatest(v_since, app.scanned_at(v_library));
  end loop;
  delete from public.displaced d using unnest(p_books, p_revisions, p_prints) as u(id, revision, print), public.book b
    where b.tenant_id = v_tenant and b.id = u.id and b.revision = u.revision and d.tenant_id = v_tenant and d.book_id = b.id and d.fingerprint = u.print;
end $$;
-- +goose StatementEnd

-- follow_content gives books the place where their content is now: books whose file is gone, or has other content since
-- follow_since, and files that appeared, or have this content since then. Content is the fingerprint, that of the pages: a file that got
-- other metadata, or was packed in another way, has another size.
--
-- p_gone are books just marked deleted. Or p_came are books analysed for the first time, and p_changed those whose analysis
-- found other content (note_displaced). A file that p_came names may be of any book that is gone; one that was announced
-- earlier only while nobody has read it. A book that was made of a file and that somebody has locked a field of
-- stays itself.
--
-- Whose file had other content since follow_since and is gone then goes where the first of the two is, else where the second is.
--
-- Where several have the same content, those of the same size belong together; of these and of the rest those that somebody has read or
-- edited go first, and of these those with the same file name. Of the others those go on whose file is gone, the most read of them first, then those whose file has other
-- content; they keep the order of their keys.
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

-- follow_over gives books whose file is gone the place where their content has appeared in another library. Content is the fingerprint;
-- it appears when the file is first read, and,
-- for books that people have read or edited, when a book came back there or followed its content (placed_at). After a scan, p_scan, these are
--   - books that are gone from its library, and files that appeared elsewhere since it was scanned before;
--   - books that are gone elsewhere, and files that appeared in its library by scans that are not settled.
-- Else, of the books p_books of p_library, which were just read or marked deleted, those that go with files of the last hour.
--
-- Of several the most read goes on first. It stays where the file has had other content since, or somebody has locked a field of
-- the book that was made of it.
--
-- A book comes into the other library as one that is gone there, and follows its content as within it. A series comes along that
-- has left no book behind, where all went to one series, newer and with nothing locked.
--
-- It tells what follow_content tells, with the library; and before, the books that left theirs ('left'); after, series that came
-- over (id) in the place of others (was) from another library (left_library): 'series'; and series that were removed, since they
-- were left with nothing: 'emptied'.
-- +goose StatementBegin
create or replace function app.follow_over(p_library uuid, p_scan uuid, p_books uuid[])
returns table (what text, id uuid, was uuid, series_id uuid, came_series uuid, left_series uuid, left_gone boolean, again text, library_id uuid, left_library uuid)
language plpgsql as $$
#variable_conflict use_column
declare
  v_tenant constant uuid := app.tenant();
  v_of constant uuid := coalesce(p_library, (select s.library_id from public.scan s where s.tenant_id = v_tenant and s.id = p_scan));
  v_since timestamptz := now() - interval '1 hour'; -- that a file may have appeared in another library
  v_fresh timestamptz := v_since;                   -- and in this one
  v_books uuid[] := p_books;
  v_who uuid[];
  v_where uuid[];
  v_old public.book[];
  v_new public.book[];
  v_library uuid;
  v_pair record;
begin
  if not exists (select from public.library l where l.tenant_id = v_tenant and l.id <> v_of) then
    return;
  end if;
  if p_scan is not null then
    select coalesce(max(t.created_at) filter (where s.settled and s.id <> p_scan and coalesce(t.params ->> 'path', '') = ''), min(t.created_at)),
        min(t.created_at) filter (where not s.settled or s.id = p_scan) into v_since, v_fresh
      from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id where s.tenant_id = v_tenant and s.library_id = v_of;
    v_books := array(select b.id from public.book b where b.tenant_id = v_tenant and b.library_id = v_of and b.fingerprint <> ''
      and (b.deleted_at is not null or greatest(b.first_read_at, b.placed_at, b.created_at) >= v_fresh));
  end if;
  for v_pass in 1..2 loop -- once to know the libraries, and again when nobody else writes to them
    with content as materialized (
      select distinct b.fingerprint from public.book b where b.tenant_id = v_tenant and b.id = any(v_books) and b.fingerprint <> ''),
    pair as materialized (
      select o.id as who, n.id as place from content c
      -- One lookup for each, whatever the planner knows of the tables.
      cross join lateral (select b.id, b.library_id, b.deleted_at >= v_since and (
            exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id)
            or exists (select from public.completion d where d.tenant_id = v_tenant and d.book_id = b.id)
            or exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> '{}')) as dear from public.book b
        where b.tenant_id = v_tenant and b.fingerprint = c.fingerprint and b.fingerprint <> '' and b.deleted_at is not null offset 0) o
      cross join lateral (select b.id from public.book b
        where b.tenant_id = v_tenant and b.fingerprint = c.fingerprint and b.fingerprint <> '' and b.deleted_at is null and b.analyzed
          and (o.library_id = v_of and b.library_id <> v_of and (coalesce(b.first_read_at, b.created_at) >= v_since or o.dear and b.placed_at >= v_since)
            or o.library_id <> v_of and b.library_id = v_of and (coalesce(b.first_read_at, b.created_at) >= v_fresh or o.dear and b.placed_at >= v_fresh or b.id = any(p_books)))
          and not exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = b.id)
          and not exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> '{}') offset 0) n),
    who as (
      select b.id, b.fingerprint, b.size, row_number() over (partition by b.fingerprint order by
          (select count(*) from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id) desc, b.key collate natural_order, b.key, b.id) as turn
      from public.book b where b.tenant_id = v_tenant and b.id in (select p.who from pair p)),
    place as (
      select b.id, b.fingerprint, row_number() over (partition by b.fingerprint order by
          not exists (select from who w where w.fingerprint = b.fingerprint and w.size = b.size), b.key collate natural_order, b.key, b.id) as turn
      from public.book b where b.tenant_id = v_tenant and b.id in (select p.place from pair p))
    select array_agg(w.id), array_agg(n.id) into v_who, v_where
      from who w join place n using (fingerprint, turn) join pair p on p.who = w.id and p.place = n.id;
    if v_who is null then
      return;
    end if;
    if v_pass = 1 then
      perform from public.scan s where s.tenant_id = v_tenant and s.id = p_scan for update;
      perform from public.library_count c where c.tenant_id = v_tenant
        and c.library_id in (select b.library_id from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where)) order by c.library_id for update;
      perform from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where) order by b.id for update;
    end if;
  end loop;
  perform from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where) order by b.id for update; -- and those that only the second pass has found
  v_old := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_who));
  v_new := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_where));

  update public.book b set library_id = n.library_id, series_id = n.series_id, key = b.key || '~' || b.id, deleted_at = b.created_at -- no scan of that library missed it
    from unnest(v_who, v_where) as u(who, place) join unnest(v_new) n on n.id = u.place
    where b.tenant_id = v_tenant and b.id = u.who;
  return query select 'left', o.id, null::uuid, o.series_id, o.series_id, o.series_id, false, null::text, o.library_id, o.library_id from unnest(v_old) o;
  for v_library in select distinct n.library_id from unnest(v_new) n order by 1 loop
    return query select f.*, v_library, v_library from app.follow_content(v_library, case when v_library = v_of then p_scan end, null,
      array(select n.id from unnest(v_new) n where n.library_id = v_library), null) f;
  end loop;

  for v_pair in
    select distinct on (n.id) s.id as old_id, s.library_id as old_library, n.id as new_id, n.library_id as new_library
    from (select o.series_id as old_series, min(n.series_id::text)::uuid as new_series
        from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
        group by 1 having count(distinct n.series_id) = 1) p
    join public.series s on s.tenant_id = v_tenant and s.id = p.old_series
    join public.series n on n.tenant_id = v_tenant and n.id = p.new_series
    where n.created_at >= greatest(v_since, s.created_at) and n.locks = '{}' and not exists (select from public.book b where b.tenant_id = v_tenant and b.series_id = s.id)
    order by n.id, s.path
  loop
    update public.series s set library_id = v_pair.new_library, path = s.path || '~' || s.id where s.tenant_id = v_tenant and s.id = v_pair.old_id;
    update public.library_count c set series = c.series + case when c.library_id = v_pair.new_library then 1 else -1 end
      where c.tenant_id = v_tenant and c.library_id in (v_pair.old_library, v_pair.new_library);
    if not app.replace_series(case when v_pair.new_library = v_of then p_scan end, v_pair.old_id, v_pair.new_id, v_since) then
      raise 'series % does not take the place of %', v_pair.old_id, v_pair.new_id;
    end if;
    return query select 'series', v_pair.old_id, v_pair.new_id, v_pair.old_id, v_pair.old_id, v_pair.old_id, false, null::text, v_pair.new_library, v_pair.old_library;
  end loop;
  return query select 'emptied', d.id, null::uuid, d.id, d.id, d.id, true, null::text, o.library_id, o.library_id
    from app.drop_empty_series(array(select o.series_id from unnest(v_old) o)) as d(id)
    join (select distinct o.series_id, o.library_id from unnest(v_old) o) o on o.series_id = d.id;
end $$;
-- +goose StatementEnd

-- next_to_send marks the tasks of the entered tenant whose messages are to be sent now, the most urgent first: so
-- many that p_window of its tasks are out, sent or running, and no more scans than the tenant may have. What was
-- sent longer than p_resend ago and not claimed was lost, and is sent again.
-- +goose StatementBegin
create or replace function app.next_to_send(p_window integer, p_resend interval) returns setof uuid language plpgsql
  set enable_sort = off set jit = off as $$
declare
  v_tenant constant uuid := app.tenant();
  v_max integer;
  v_room bigint;
  v_scans bigint;
  v_task record;
begin
  select coalesce(t.max_scans, 2147483647) into v_max from public.tenant t where t.id = v_tenant and t.status = 'active';
  if not found then
    return;
  end if;
  perform pg_advisory_xact_lock(7268, hashtext(v_tenant::text)); -- two that count at once would send twice as many
  update public.task k set queued_at = null where k.tenant_id = v_tenant and k.status = 'pending' and k.queued_at < now() - p_resend;
  select p_window - count(*) filter (where not k.done), count(*) filter (where k.type = 'scan_library') into v_room, v_scans
    from public.task k where k.tenant_id = v_tenant and k.status = 'running';
  select v_room - count(*), v_scans + count(*) filter (where k.type = 'scan_library') into v_room, v_scans
    from public.task k where k.tenant_id = v_tenant and k.status = 'pending' and k.queued_at is not null;
  while v_room > 0 loop
    select k.id, k.type into v_task from public.task k
      where k.tenant_id = v_tenant and k.status = 'pending' and k.queued_at is null and k.scheduled_for <= now()
        and (v_scans < v_max or k.type <> 'scan_library')
      order by k.priority desc, k.scheduled_for, k.id limit 1 for update skip locked;
    exit when not found;
    update public.task k set queued_at = now() where k.tenant_id = v_tenant and k.id = v_task.id;
    return next v_task.id;
    v_room := v_room - 1;
    v_scans := v_scans + (v_task.type = 'scan_library')::integer;
  end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The same books follow, and more; a window is no longer filled by scans.
select 1;
