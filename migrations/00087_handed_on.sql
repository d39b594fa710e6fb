-- What people have chosen and written of a series that goes reaches one that stays, however many go and in whatever
-- order, and no two transactions wait for each other for it.

-- +goose Up
-- heirs_of is, for series that go, the nearest heir that stays, and how far that is.
-- +goose StatementBegin
create or replace function app.heirs_of(p_series uuid[]) returns table (id uuid, heir uuid, library_id uuid, distance integer)
language sql stable as $$
  with recursive going as materialized (
    select s.id, s.heir from public.series s where s.tenant_id = app.tenant() and s.id = any(p_series) and s.heir is not null),
  follows as ( -- backwards from those that stay: what goes round is in no row
    select g.id, n.id as heir, n.library_id, 1 as distance from going g
      join public.series n on n.tenant_id = app.tenant() and n.id = g.heir where n.id not in (select unnest(p_series))
    union all
    select g.id, f.heir, f.library_id, f.distance + 1 from follows f join going g on g.heir = f.id)
  select f.id, f.heir, f.library_id, f.distance from follows f
$$;
-- +goose StatementEnd

-- As 00085 has it; heirs are those that stay. What is nearer to one of these comes first.
-- +goose StatementBegin
create or replace function app.hand_left(p_series uuid[]) returns void language plpgsql as $$
declare
  v_pair record;
begin
  for v_pair in
    select s.id, n.id as heir, s.created_at <= n.created_at as older from app.heirs_of(p_series) h
      join public.series s on s.tenant_id = app.tenant() and s.id = h.id
      join public.series n on n.tenant_id = s.tenant_id and n.id = h.heir order by h.distance, s.path, s.id
  loop
    perform app.hand_series(v_pair.id, v_pair.heir);
    perform app.hand_releases(v_pair.id, v_pair.heir);
    perform app.hand_written(v_pair.id, v_pair.heir, v_pair.older);
    perform set_config('app.heirs', concat_ws(' ', nullif(current_setting('app.heirs', true), ''), v_pair.heir), true);
  end loop;
end $$;
-- +goose StatementEnd

-- lock_libraries makes those wait for each other that write to the libraries, or to those where heirs of their series are.
-- +goose StatementBegin
create or replace function app.lock_libraries(p_libraries uuid[]) returns void language plpgsql as $$
begin
  perform from public.library_count c where c.tenant_id = app.tenant() and (c.library_id = any(p_libraries) or c.library_id in (
      select n.library_id from public.series s join public.series n on n.tenant_id = s.tenant_id and n.id = s.heir
      where s.tenant_id = app.tenant() and s.library_id = any(p_libraries) and s.heir is not null))
    order by c.library_id for update;
end $$;
-- +goose StatementEnd

-- heirs_held are those of the series whose heirs are in libraries that others write to: heirs since lock_libraries. Nobody
-- is waited for here, out of the order of locks.
-- +goose StatementBegin
create or replace function app.heirs_held(p_series uuid[]) returns uuid[] language plpgsql as $$
declare
  v_ids uuid[];
  v_libraries uuid[];
  v_free uuid[];
begin
  select array_agg(h.id), array_agg(h.library_id) into v_ids, v_libraries from app.heirs_of(p_series) h;
  v_free := array(select c.library_id from public.library_count c
    where c.tenant_id = app.tenant() and c.library_id = any(v_libraries) for update skip locked);
  return array(select u.id from unnest(v_ids, v_libraries) as u(id, library) where u.library <> all(v_free));
end $$;
-- +goose StatementEnd

-- As 00082 has it; a series whose heir is held stays, with what is to be handed over.
-- +goose StatementBegin
create or replace function app.drop_empty_series(p_series uuid[]) returns setof uuid language plpgsql as $$
declare
  v_empty uuid[];
  v_held uuid[];
begin
  if coalesce((select value from public.setting where tenant_id = app.tenant() and key = 'purge.purge_empty_series'), 'true') <> 'true' then
    return;
  end if;
  v_empty := array(select s.id from public.series s where s.tenant_id = app.tenant() and s.id = any(p_series) and s.book_count = 0
    and not exists (select from public.book b where b.tenant_id = app.tenant() and b.series_id = s.id));
  v_held := app.heirs_held(v_empty);
  v_empty := array(select u from unnest(v_empty) u where u <> all(v_held));
  perform app.hand_left(v_empty);
  return query delete from public.series s where s.tenant_id = app.tenant() and s.id = any(v_empty) returning s.id;
end $$;
-- +goose StatementEnd

-- hand_library gives what people have chosen and written of the next p_count series of a library that is to go to their
-- heirs in others, and tells whether there may be more. Who has inherited from them within the library is next.
-- +goose StatementBegin
create or replace function app.hand_library(p_library uuid, p_count integer) returns boolean language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_held uuid[];
  v_some uuid[] := array(select s.id from public.series s join public.series n on n.tenant_id = s.tenant_id and n.id = s.heir
    where s.tenant_id = v_tenant and s.library_id = p_library and s.heir is not null and n.library_id <> p_library order by s.id limit p_count);
begin
  if v_some = '{}' then
    return false;
  end if;
  v_held := app.heirs_held(v_some);
  v_some := array(select u from unnest(v_some) u where u <> all(v_held));
  perform app.hand_left(v_some);
  update public.series s set heir = n.heir from public.series n
    where s.tenant_id = v_tenant and s.library_id = p_library and n.tenant_id = v_tenant and n.id = s.heir and n.id = any(v_some);
  update public.series s set heir = null where s.tenant_id = v_tenant and s.id = any(v_some);
  return true;
end $$;
-- +goose StatementEnd

-- As 00082 has it, with lock_libraries.
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
          and not f.awaited
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
      perform app.lock_libraries(array(select distinct b.library_id from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where)));
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
    where s.tenant_id = v_tenant and s.id = p.old_series and (p.same or n.created_at >= greatest(v_since, s.created_at))
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
