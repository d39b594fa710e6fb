-- Books follow their content to no library that has come since the others were locked, and a series that goes on in another
-- place has no heir from before.

-- +goose Up
-- As 00087 has it; the heir, where some of the books went before, is none of the series that it is now.
-- +goose StatementBegin
create or replace function app.replace_series(p_scan uuid, p_old uuid, p_new uuid, p_since timestamptz) returns boolean language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_new public.series;
begin
  select n.* into v_new from public.series n join public.series o on o.tenant_id = n.tenant_id and o.id = p_old
    where n.tenant_id = v_tenant and n.id = p_new and n.id <> o.id and n.library_id = o.library_id and o.book_count = 0
      and n.created_at >= p_since and n.locks = '{}' and o.created_at <= n.created_at
    for update of n; -- what people write of it until here goes along
  if not found then
    update public.series o set heir = p_new from public.series n
      where o.tenant_id = v_tenant and o.id = p_old and n.tenant_id = v_tenant and n.id = p_new and n.id <> o.id
        and coalesce(n.placed_at, n.created_at) >= greatest(p_since, o.created_at)
        and not exists (select from public.series h where h.tenant_id = v_tenant and h.id = o.heir);
    return false;
  end if;
  update public.book set series_id = p_old where tenant_id = v_tenant and series_id = p_new;
  perform app.hand_series(p_new, p_old);
  perform app.hand_releases(p_new, p_old);
  perform app.hand_written(p_new, p_old, false);
  update public.series s set heir = p_old where s.tenant_id = v_tenant and s.heir = p_new and s.id <> p_old;
  delete from public.series where tenant_id = v_tenant and id = p_new;
  update public.series s set path = v_new.path, name = v_new.name, updated_at = now(), placed_at = v_new.created_at, heir = null,
      title = case when 'title' = any(s.locks) then s.title else v_new.title end,
      search_title = case when 'title' = any(s.locks) then s.search_title else v_new.search_title end,
      title_sort = coalesce(s.custom_title_sort, case when s.locks && '{title,titleSort}' then s.title_sort else v_new.title_sort end)
    where s.tenant_id = v_tenant and s.id = p_old;
  update public.scan set series_created = greatest(series_created - 1, 0) where tenant_id = v_tenant and id = p_scan;
  return true;
end $$;
-- +goose StatementEnd

-- As 00087 has it; a pair of which a library is not locked is left to whoever has just written the book there, and looks after that.
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

  update public.series s set heir = p.new_series
    from (select distinct on (o.series_id) o.series_id as old_series, n.series_id as new_series, coalesce(bool_or(o.id = any(v_same)), false) as same
      from unnest(v_who, v_where) as u(who, place) join unnest(v_old) o on o.id = u.who join unnest(v_new) n on n.id = u.place
      group by o.series_id, n.series_id order by o.series_id, count(*) desc, n.series_id) p
    join public.series n on n.tenant_id = v_tenant and n.id = p.new_series
    where s.tenant_id = v_tenant and s.id = p.old_series and (p.same or coalesce(n.placed_at, n.created_at) >= greatest(v_since, s.created_at))
      and not exists (select from public.series h where h.tenant_id = v_tenant and h.id = s.heir);
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

-- +goose Down
-- The functions go on.
select 1;
