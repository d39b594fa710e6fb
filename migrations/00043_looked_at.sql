-- Whoever deleted all tasks and scanned the library to which files had gone before the one that they had left lost the progress and the
-- edits of their books: since when a file may have appeared elsewhere was known by the scans alone, which go with their tasks. The library
-- itself knows it now. It counts also where a library is deleted, whose books follow their files before. follow_over is otherwise that of
-- 00042.

-- +goose Up
set local lock_timeout = '5s';
-- looked_at is when the last scan began that has looked at all of the library, was completed and is settled.
alter table library add column if not exists looked_at timestamptz;
update library l set looked_at = x.at from (
  select s.tenant_id, s.library_id, max(t.created_at) as at from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id
  where s.settled and t.status = 'completed' and coalesce(t.params ->> 'path', '') = '' group by 1, 2) x
where l.tenant_id = x.tenant_id and l.id = x.library_id;

-- follow_over gives books whose file is gone the place where their content has appeared in another library. Content is the fingerprint;
-- it appears when the file is first read, and,
-- for books that people have read or edited, when a book came back there or followed its content (placed_at). After a scan, p_scan, these are
--   - books that are gone from its library, and files that appeared elsewhere since it was scanned before;
--   - books that are gone elsewhere, and files that appeared in its library by scans that are not settled.
-- Else, of the books p_books of p_library, which were just read or marked deleted, those that go with files of the last hour; where
-- p_library is not active any more, so that no scan of it comes, with files that appeared elsewhere since it was scanned.
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
    select coalesce(l.looked_at, min(t.created_at)), min(t.created_at) filter (where not s.settled or s.id = p_scan) into v_since, v_fresh
      from public.library l join public.scan s on s.tenant_id = l.tenant_id and s.library_id = l.id join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
      where l.tenant_id = v_tenant and l.id = v_of group by l.looked_at;
    v_books := array(select b.id from public.book b where b.tenant_id = v_tenant and b.library_id = v_of and b.fingerprint <> ''
      and (b.deleted_at is not null or greatest(b.first_read_at, b.placed_at, b.created_at) >= v_fresh));
  elsif not (select l.is_active from public.library l where l.tenant_id = v_tenant and l.id = v_of) then
    v_since := least(v_since, (select coalesce(l.looked_at, l.created_at) from public.library l where l.tenant_id = v_tenant and l.id = v_of));
    v_fresh := 'infinity';
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
  return query select 'emptied', d.id, null::uuid, d.id, d.id, d.id, true, null::text, o.library_id, o.library_id
    from app.drop_empty_series(array(select o.series_id from unnest(v_old) o)) as d(id)
    join (select distinct o.series_id, o.library_id from unnest(v_old) o) o on o.series_id = d.id;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The library goes on knowing it.
select 1;
