-- What people have chosen and written of a series that goes is for the new one that most of its books went to, not for the
-- one that the first went to; and when two books become one, completions have the passes of their sessions.

-- +goose Up
-- choose_heirs notes which series the books (p_who) have left, unless that goes on where they are, and makes the new one
-- that most have gone to its heir, now or before. Of those that went to a new one the time is -infinity, of others null:
-- 00038 compares the times at which metadata named another. p_same are books whose very file was in another library.
-- +goose StatementBegin
create or replace function app.choose_heirs(p_who uuid[], p_left uuid[], p_since timestamptz, p_same uuid[]) returns void language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_left uuid[];
begin
  with went as (
    update public.book k set left_series_id = s.id,
        left_at = case when k.id = any(p_same) or coalesce(n.placed_at, n.created_at) >= greatest(p_since, s.created_at) then '-infinity'::timestamptz end
      from unnest(p_who, p_left) as u(who, series)
      join public.series s on s.tenant_id = v_tenant and s.id = u.series
      join public.book b on b.tenant_id = v_tenant and b.id = u.who and b.series_id <> s.id
      join public.series n on n.tenant_id = v_tenant and n.id = b.series_id
      where k.tenant_id = v_tenant and k.id = b.id
      returning s.id)
  select array_agg(distinct w.id) into v_left from went w;
  update public.series s set heir = p.heir
    from (select distinct on (o.id) o.id, n.id as heir from public.series o
      join public.book k on k.tenant_id = v_tenant and k.left_series_id = o.id and k.series_id <> o.id
      join public.series n on n.tenant_id = v_tenant and n.id = k.series_id
      where o.tenant_id = v_tenant and o.id = any(v_left)
      group by o.tenant_id, o.id, n.tenant_id, n.id
      having n.id = o.heir or min(k.left_at) = '-infinity'
        or coalesce(n.placed_at, n.created_at) >= min(k.left_at) and coalesce(n.placed_at, n.created_at) >= o.created_at
      order by o.id, count(*) desc, n.id is distinct from o.heir, n.id) p
    where s.tenant_id = v_tenant and s.id = p.id and s.heir is distinct from p.heir;
end $$;
-- +goose StatementEnd

-- As 00091 has it, with choose_heirs; completions are renumbered before the sessions, which are counted for it.
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
    select v_tenant, u.added, p_library, o.series_id, o.key, o.size, o.etag, o.modified_at, o.format, case when o.analyzed then o.fingerprint else '' end, n.name, n.name, lower(n.name),
      case when exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = o.id and 'numberLock' = any(m.locks)) then null else o.number end,
      o.reading_direction, case when o.analyzed then o.page_count else 0 end, o.analyzed, o.error_type, o.error_message, o.error_at, o.seen_at, now()
    from unnest(v_left, v_added) as u(id, added) join unnest(v_old) o on o.id = u.id
    cross join lateral (select regexp_replace(substring(o.key from '[^/]*$'), '\.[^.]*$', '') as name) n;
  update public.book k set key = n.key, series_id = n.series_id, size = n.size, etag = n.etag, modified_at = n.modified_at, seen_at = n.seen_at,
      format = n.format, fingerprint = n.fingerprint, sidecar = n.sidecar, reading_direction = n.reading_direction, page_count = n.page_count, analyzed = n.analyzed,
      title = case when 'titleLock' = any(l.locks) then k.title else n.title end,
      search_title = case when 'titleLock' = any(l.locks) then k.search_title else n.search_title end,
      title_sort = case when l.locks && '{titleLock,titleSortLock}' then k.title_sort else n.title_sort end,
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

-- As 00089 has it, with choose_heirs.
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
  v_leaves constant boolean := not (select l.is_active from public.library l where l.tenant_id = v_tenant and l.id = v_of);
  v_listed boolean := false;                        -- all of the library
  v_same uuid[];                                    -- of v_who: those whose very file is in the other library
  v_who uuid[];
  v_where uuid[];
  v_old public.book[];
  v_new public.book[];
  v_locked uuid[];                                  -- libraries
  v_library uuid;
  v_pair record;
begin
  if not exists (select from public.library l where l.tenant_id = v_tenant and l.id <> v_of) then
    return;
  end if;
  if p_scan is not null then
    select coalesce(l.looked_at, min(t.created_at)), min(t.created_at) filter (where not s.settled or s.id = p_scan) into v_since, v_fresh
      from public.library l join public.scan s on s.tenant_id = l.tenant_id and s.library_id = l.id join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
      where l.tenant_id = v_tenant and l.id = v_of group by l.looked_at;
    v_listed := exists (select from public.task t join public.scan s on s.tenant_id = t.tenant_id and s.id = t.id
      where t.tenant_id = v_tenant and t.id = p_scan and coalesce(t.params ->> 'path', '') = '' and s.unlisted = 0 and s.files_refused = 0);
    v_books := array(select b.id from public.book b where b.tenant_id = v_tenant and b.library_id = v_of and b.fingerprint <> ''
      and (b.deleted_at is not null or greatest(b.first_read_at, b.placed_at, b.created_at) >= v_fresh));
  elsif v_leaves then
    v_since := least(v_since, (select coalesce(l.looked_at, l.created_at) from public.library l where l.tenant_id = v_tenant and l.id = v_of));
    v_fresh := 'infinity';
  end if;
  for v_pass in 1..2 loop -- once to know the libraries, and again when nobody else writes to them
    with content as materialized (
      select distinct b.fingerprint from public.book b where b.tenant_id = v_tenant and b.id = any(v_books) and b.fingerprint <> ''),
    pair as materialized (
      select o.id as who, n.id as place, n.same from content c
      -- One lookup for each, whatever the planner knows of the tables.
      cross join lateral (select b.id, b.library_id, b.key, b.deleted_at >= v_since and (
            exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id)
            or exists (select from public.completion d where d.tenant_id = v_tenant and d.book_id = b.id)
            or exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> '{}')) as dear from public.book b
        where b.tenant_id = v_tenant and b.fingerprint = c.fingerprint and b.fingerprint <> '' and b.deleted_at is not null offset 0) o
      cross join lateral (select b.id, f.same from public.book b
        cross join lateral (select v_leaves and l.bucket = m.bucket and m.prefix || o.key = l.prefix || b.key as same,
            m.is_active and l.bucket = m.bucket and starts_with(l.prefix || b.key, m.prefix) and not (v_listed and m.id = v_of) as awaited
          from public.library l join public.library m on m.tenant_id = l.tenant_id and m.id = o.library_id where l.tenant_id = b.tenant_id and l.id = b.library_id) f
        where b.tenant_id = v_tenant and b.fingerprint = c.fingerprint and b.fingerprint <> '' and b.deleted_at is null and b.analyzed
          and not f.awaited and (v_pass = 1 or o.library_id = any(v_locked) and b.library_id = any(v_locked))
          and (o.library_id = v_of and b.library_id <> v_of and (coalesce(b.first_read_at, b.created_at) >= v_since or o.dear and b.placed_at >= v_since or f.same)
            or o.library_id <> v_of and b.library_id = v_of and (coalesce(b.first_read_at, b.created_at) >= v_fresh or o.dear and b.placed_at >= v_fresh or b.id = any(p_books)))
          and not exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = b.id)
          and not exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> '{}') offset 0) n),
    own as (select distinct on (p.who) p.who, p.place from pair p where p.same order by p.who, p.place),
    other as (select p.who, p.place from pair p where not exists (select from own s where s.who = p.who or s.place = p.place)),
    who as (
      select b.id, b.fingerprint, b.size, row_number() over (partition by b.fingerprint order by
          (select count(*) from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id) desc, b.key collate natural_order, b.key, b.id) as turn
      from public.book b where b.tenant_id = v_tenant and b.id in (select p.who from other p)),
    place as (
      select b.id, b.fingerprint, row_number() over (partition by b.fingerprint order by
          not exists (select from who w where w.fingerprint = b.fingerprint and w.size = b.size), b.key collate natural_order, b.key, b.id) as turn
      from public.book b where b.tenant_id = v_tenant and b.id in (select p.place from other p))
    select array_agg(x.who), array_agg(x.place), array_agg(x.who) filter (where x.same) into v_who, v_where, v_same
      from (select o.who, o.place, true as same from own o
        union all select p.who, p.place, false from who w join place n using (fingerprint, turn) join other p on p.who = w.id and p.place = n.id) x;
    if v_who is null then
      return;
    end if;
    if v_pass = 1 then
      perform from public.scan s where s.tenant_id = v_tenant and s.id = p_scan for update;
      v_locked := array(select distinct b.library_id from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where));
      perform app.lock_libraries(v_locked);
      perform from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where) order by b.id for update;
    end if;
  end loop;
  perform from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where) order by b.id for update; -- and those that only the second pass has found
  v_old := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_who));
  v_new := array(select b from public.book b where b.tenant_id = v_tenant and b.id = any(v_where));

  update public.book b set library_id = n.library_id, series_id = n.series_id, deleted_at = b.created_at, -- no scan of that library missed it
      key = b.key || '~' || b.id || case when b.id = any(v_same) and octet_length(b.key) < 2000 then '/' || substring(b.key from '[^/]*$') else '' end -- equal files go by their names
    from unnest(v_who, v_where) as u(who, place) join unnest(v_new) n on n.id = u.place
    where b.tenant_id = v_tenant and b.id = u.who;
  update public.displaced d set library_id = b.library_id from public.book b -- content that it had before is looked for there now
    where d.tenant_id = v_tenant and d.book_id = any(v_who) and b.tenant_id = v_tenant and b.id = d.book_id;
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
  perform app.choose_heirs(array_agg(o.id), array_agg(o.series_id), v_since, v_same) from unnest(v_old) o;
  return query select 'emptied', d.id, null::uuid, d.id, d.id, d.id, true, null::text, o.library_id, o.library_id
    from app.drop_empty_series(array(select o.series_id from unnest(v_old) o)) as d(id)
    join (select distinct o.series_id, o.library_id from unnest(v_old) o) o on o.series_id = d.id;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The functions go on.
select 1;
