-- Sharing tags: which series a user sees. Whoever has no grant sees everything. Whoever has an allowed tag, of their
-- own or by a group, sees only series that carry one of theirs; a denied tag hides its series in any case.
--
-- The transaction of a user with grants becomes longbox_limited, whose policies leave out what is hidden: no query can
-- forget it, and the plans of everybody else stay what they were.

-- +goose Up
set local lock_timeout = '5s';
lock table task, scan, library_count, series, book in access exclusive mode; -- in the order of everybody else

-- +goose StatementBegin
do $$
begin
  if not exists (select from pg_roles where rolname = 'longbox_limited') or not pg_has_role('longbox_app', 'longbox_limited', 'member') then
    raise exception 'the database role longbox_limited is missing, or longbox_app may not become it: give migrate DATABASE_ADMIN_URL, or run as a superuser: create role longbox_limited; create role longbox_may_limit noinherit; grant longbox_limited to longbox_may_limit; grant longbox_may_limit to longbox_app';
  end if;
end $$;
-- +goose StatementEnd

grant usage on schema app, public to longbox_limited;
grant execute on function app.tenant_by_host(text), app.komga_prefix(text), app.gather_statistics(bigint), app.find(text, text) to longbox_limited;

-- protect puts a table under row-level security: longbox_app sees the rows of the entered tenant only, longbox_limited
-- too, and less where app.limit_series or app.limit_books was called as well; longbox_system the same as longbox_app,
-- unless system_wide lets it see all (claiming tasks, finding due schedules).
-- +goose StatementBegin
create or replace procedure app.protect(tbl regclass, system_wide boolean default false, tenant_column text default 'tenant_id')
language plpgsql as $$
begin
  execute format('alter table %s enable row level security', tbl);
  execute format('create policy tenant on %s to longbox_app using (%I = (select app.tenant())) with check (%I = (select app.tenant()))', tbl, tenant_column, tenant_column);
  if system_wide then
    execute format('create policy system on %s to longbox_system using (true) with check (true)', tbl);
  else
    execute format('create policy system on %s to longbox_system using (%I = (select app.tenant())) with check (%I = (select app.tenant()))', tbl, tenant_column, tenant_column);
  end if;
  execute format('create policy limited on %s to longbox_limited using (%I = (select app.tenant())) with check (%I = (select app.tenant()))', tbl, tenant_column, tenant_column);
  execute format('grant select, insert, update, delete on %s to longbox_app, longbox_system, longbox_limited', tbl);
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
do $$
declare
  v_table regclass;
begin
  for v_table in select p.polrelid from pg_policy p where p.polname = 'tenant' loop
    execute format('create policy limited on %s to longbox_limited using (%s) with check (%2$s)', v_table,
      (select pg_get_expr(p.polqual, p.polrelid) from pg_policy p where p.polrelid = v_table and p.polname = 'tenant'));
    execute (select format('grant %s on %s to longbox_limited', string_agg(a.privilege_type, ', '), v_table)
      from pg_class c, aclexplode(c.relacl) a where c.oid = v_table and a.grantee = 'longbox_app'::regrole);
  end loop;
end $$;
-- +goose StatementEnd

create table sharing_tag (
  tenant_id   uuid not null references tenant on delete cascade,
  id          uuid not null,
  name        text not null,
  description text,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index sharing_tag_name on sharing_tag (tenant_id, lower(name));
call app.protect('sharing_tag');

create table series_sharing_tag (
  tenant_id uuid not null,
  series_id uuid not null,
  sharing_tag_id    uuid not null,
  primary key (tenant_id, series_id, sharing_tag_id),
  foreign key (tenant_id, series_id) references series on delete cascade,
  foreign key (tenant_id, sharing_tag_id) references sharing_tag on delete cascade
);
create index series_sharing_tag_tag on series_sharing_tag (tenant_id, sharing_tag_id, series_id);
call app.protect('series_sharing_tag');

create table access_group (
  tenant_id   uuid not null references tenant on delete cascade,
  id          uuid not null,
  name        text not null,
  description text,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index access_group_name on access_group (tenant_id, lower(name));
call app.protect('access_group');

create table access_group_member (
  tenant_id  uuid not null,
  group_id   uuid not null,
  account_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, group_id, account_id),
  foreign key (tenant_id, group_id) references access_group on delete cascade,
  foreign key (tenant_id, account_id) references account on delete cascade
);
create index access_group_member_account on access_group_member (tenant_id, account_id, group_id);
call app.protect('access_group_member');

-- A grant is a user's or a group's.
create table sharing_grant (
  tenant_id  uuid not null,
  id         uuid not null,
  sharing_tag_id     uuid not null,
  account_id uuid,
  group_id   uuid,
  mode       text not null check (mode in ('allow', 'deny')),
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  check (num_nonnulls(account_id, group_id) = 1),
  foreign key (tenant_id, sharing_tag_id) references sharing_tag on delete cascade,
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, group_id) references access_group on delete cascade
);
create unique index sharing_grant_account on sharing_grant (tenant_id, account_id, sharing_tag_id) where account_id is not null;
create unique index sharing_grant_group on sharing_grant (tenant_id, group_id, sharing_tag_id) where group_id is not null;
create index sharing_grant_tag on sharing_grant (tenant_id, sharing_tag_id);
call app.protect('sharing_grant');

-- The tags that the user of the current transaction is allowed and denied; null for none.
create function app.allowed() returns uuid[] language sql stable parallel safe
  as $$ select nullif(current_setting('app.allowed', true), '')::uuid[] $$;
create function app.denied() returns uuid[] language sql stable parallel safe
  as $$ select nullif(current_setting('app.denied', true), '')::uuid[] $$;

-- limited tells whether the user of the current transaction has grants, so that counters of everything do not hold.
create function app.limited() returns boolean language sql stable parallel safe
  as $$ select app.allowed() is not null or app.denied() is not null $$;

-- administers tells whether the request may do what SystemAdmin allows.
create function app.administers() returns boolean language sql stable parallel safe
  as $$ select current_setting('app.administers', true) = 'true' $$;

-- must_see_all ends what would be wrong where something is hidden from the user: to say what no series has, to delete
-- all that there is.
-- +goose StatementBegin
create function app.must_see_all() returns void language plpgsql as $$
begin
  if app.limited() then
    raise exception 'Some series are hidden from you, and this is about all: ask somebody from whom none is' using errcode = 'LB403';
  end if;
end $$;
-- +goose StatementEnd

-- total is how many series or books, or how many bytes or pages of books (p_of), the user sees of a library, or of all
-- (null): from the counters of libraries, or from those of the series where the others count what the user does not
-- see. A function, so that nobody else's plan has a trace of it.
-- +goose StatementBegin
create function app.total(p_of text, p_library uuid default null) returns bigint language plpgsql stable parallel safe as $$
begin
  if app.limited() and p_library is null then
    return (select coalesce(sum(case p_of when 'series' then 1 when 'books' then s.book_count when 'bytes' then s.file_size else s.page_count end), 0)
      from public.series s where s.tenant_id = app.tenant());
  elsif app.limited() then
    return (select coalesce(sum(case p_of when 'series' then 1 when 'books' then s.book_count when 'bytes' then s.file_size else s.page_count end), 0)
      from public.series s where s.tenant_id = app.tenant() and s.library_id = p_library);
  end if;
  return (select coalesce(sum(case p_of when 'series' then c.series when 'books' then c.books when 'bytes' then c.bytes else c.pages end), 0)
    from public.library_count c where c.tenant_id = app.tenant() and (p_library is null or c.library_id = p_library));
end $$;
-- +goose StatementEnd

-- visible is the condition under which that user sees the series whose id is in p_column.
create function app.visible(p_column text) returns text language sql immutable parallel safe as $$
  select format($q$(not exists (select from public.series_sharing_tag st where st.tenant_id = (select app.tenant())
      and st.series_id = %1$s and st.sharing_tag_id = any((select app.denied())::uuid[]))
    and ((select app.allowed()) is null or exists (select from public.series_sharing_tag st where st.tenant_id = (select app.tenant())
      and st.series_id = %1$s and st.sharing_tag_id = any((select app.allowed())::uuid[]))))$q$, p_column)
$$;

-- limit_series lets longbox_limited see those rows of a protected table only whose series, named by a column, the user
-- sees.
-- +goose StatementBegin
create procedure app.limit_series(tbl regclass, p_column text) language plpgsql as $$
begin
  execute format('alter policy limited on %s using (tenant_id = (select app.tenant()) and %s)', tbl, app.visible(format('%s.%I', tbl, p_column)));
end $$;
-- +goose StatementEnd

-- limit_books is the same for a table whose rows belong to a book, or where they have one.
-- +goose StatementBegin
create procedure app.limit_books(tbl regclass) language plpgsql as $$
begin
  execute format($q$alter policy limited on %1$s using (tenant_id = (select app.tenant()) and (%1$s.book_id is null
    or exists (select from public.book b where b.tenant_id = (select app.tenant()) and b.id = %1$s.book_id)) and %2$s)$q$, tbl,
    case when exists (select from pg_attribute a where a.attrelid = tbl and a.attname = 'series_id')
      then format('(%1$s.series_id is null or %2$s)', tbl, app.visible(tbl || '.series_id')) else 'true' end);
end $$;
-- +goose StatementEnd

call app.limit_series('series', 'id');
call app.limit_series('book', 'series_id');
call app.limit_series('series_genre', 'series_id');
call app.limit_series('series_tag', 'series_id');
call app.limit_series('external_rating', 'series_id');
call app.limit_series('alternate_title', 'series_id');
call app.limit_series('series_rating', 'series_id');
call app.limit_series('series_cover', 'series_id');
call app.limit_books('book_metadata');
call app.limit_books('page_index');
call app.limit_books('page_pack');
call app.limit_books('progress');
call app.limit_books('completion');
call app.limit_books('reading_session');
call app.limit_books('displaced');
call app.limit_books('external_link');
call app.limit_books('external_id');
call app.limit_books('wanted');
call app.limit_books('collection_member');
call app.limit_books('task');

-- As 00040 has it; a user with grants is longbox_limited from here to the end of the transaction.
-- +goose StatementBegin
create or replace function app.enter(p_tenant uuid, p_account uuid, p_generation integer, p_key bytea, p_permission text,
  out account_id uuid, out username text, out email text, out role text, out email_verified boolean,
  out extra text[], out permissions text[])
language plpgsql as $$
declare
  v_key public.api_key;
  v_account public.account;
  v_allowed uuid[];
  v_denied uuid[];
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  if p_key is not null then
    select * into v_key from public.api_key k where k.tenant_id = p_tenant and k.account_id = p_account and k.hash = p_key;
    if not found or not v_key.is_active or v_key.expires_at <= now() then
      raise exception 'The API key is invalid, disabled or expired' using errcode = 'LB401';
    end if;
  end if;
  select * into v_account from public.account a where a.tenant_id = p_tenant and a.id = p_account;
  if not found or not v_account.is_active then
    raise exception 'The user is unknown or disabled' using errcode = 'LB401';
  end if;
  if p_generation is not null and p_generation <> v_account.generation then
    raise exception 'The session has ended; sign in again' using errcode = 'LB401';
  end if;
  permissions := app.role_permissions(v_account.role) || v_account.permissions;
  if v_key.id is not null then
    permissions := array(select unnest(permissions) intersect select unnest(v_key.permissions));
    if v_key.last_used_at is null or v_key.last_used_at < now() - interval '5 minutes' then
      update public.api_key k set last_used_at = now() where k.tenant_id = p_tenant and k.id = (
        select l.id from public.api_key l where l.tenant_id = p_tenant and l.id = v_key.id for no key update skip locked);
    end if;
  end if;
  if p_permission <> '' and not p_permission = any(permissions) then
    raise exception 'Missing required permission: %', p_permission using errcode = 'LB403';
  end if;
  account_id := v_account.id;
  username := v_account.username;
  email := v_account.email;
  role := v_account.role;
  email_verified := v_account.email_verified;
  extra := v_account.permissions;
  perform set_config('app.account', account_id::text, true),
    set_config('statement_timeout', coalesce(nullif(current_setting('app.request_timeout', true), ''), '2s'), true);
  select array_agg(g.sharing_tag_id) filter (where g.mode = 'allow'), array_agg(g.sharing_tag_id) filter (where g.mode = 'deny')
    into v_allowed, v_denied
    from (select d.sharing_tag_id, d.mode from public.sharing_grant d where d.tenant_id = p_tenant and d.account_id = p_account
      union all
      select d.sharing_tag_id, d.mode from public.access_group_member m
      join public.sharing_grant d on d.tenant_id = m.tenant_id and d.group_id = m.group_id
      where m.tenant_id = p_tenant and m.account_id = p_account) g;
  perform set_config('app.allowed', coalesce(v_allowed::text, ''), true), set_config('app.denied', coalesce(v_denied::text, ''), true),
    set_config('app.administers', ('SystemAdmin' = any(permissions))::text, true);
  if v_allowed is not null or v_denied is not null then
    perform set_config('role', 'longbox_limited', true);
  end if;
end $$;
-- +goose StatementEnd

-- As 00045 has it, without what the user does not see.
-- +goose StatementBegin
create or replace function app.find(p_in text, p_query text) returns table (id uuid, score real)
language plpgsql stable rows 100 security definer set search_path = pg_catalog, public as $$
declare
  v_table constant text := case p_in when 'series' then 'public.series' when 'book' then 'public.book' end;
  v_fuzzy constant boolean := coalesce((select s.value = 'true' from public.setting s
    where s.tenant_id = app.tenant() and s.key = 'search.fuzzy.enabled'), false);
  v_words text;
  v_found text;
begin
  -- As constants, from which the planner tells what is rare.
  select string_agg(format('t.search_title like %L', '%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%'), ' and ') into v_words
    from unnest(string_to_array(p_query, ' ')) w where w <> '';
  if v_words is null then
    return;
  end if;
  perform set_config('pg_trgm.word_similarity_threshold', '0.4', true); -- two letters of six in each other's place
  v_found := format($q$
    select t.id, (case when t.search_title = $1 then 4 when starts_with(t.search_title, $1) then 3
      when strpos(' ' || t.search_title || ' ', ' ' || $1 || ' ') > 0 then 2 when strpos(t.search_title, $1) > 0 then 1 else %s end)::real
    from %s t where t.tenant_id = %L and (%s %s)$q$,
    case when v_fuzzy then 'word_similarity($1, t.search_title)' else '0' end, v_table, app.tenant(), v_words,
    case when v_fuzzy then format('or %L <%% t.search_title', p_query) end);
  if app.limited() then -- else what this user may not see would take the places of what the user may
    v_found := v_found || ' and ' || app.visible(case p_in when 'series' then 't.id' else 't.series_id' end);
  end if;
  if p_in = 'book' then -- each kind has its index
    v_found := v_found || ' and t.analyzed union all ' || v_found || ' and not t.analyzed';
  end if;
  return query execute 'select * from (' || v_found || ') f limit 20000' using p_query;
end $$;
-- +goose StatementEnd

-- As 00054 has it; what was hidden stays hidden.
-- +goose StatementBegin
create or replace function app.hand_series(p_from uuid, p_to uuid) returns void language sql as $$
  insert into public.series_sharing_tag (tenant_id, series_id, sharing_tag_id)
    select x.tenant_id, p_to, x.sharing_tag_id from public.series_sharing_tag x
    where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  insert into public.wanted (tenant_id, account_id, id, series_id, place, added_at)
    select w.tenant_id, w.account_id, gen_random_uuid(), p_to, w.place, w.added_at from public.wanted w
    where w.tenant_id = app.tenant() and w.series_id = p_from on conflict do nothing;
  insert into public.collection_member (tenant_id, id, collection_id, series_id, place, added_at)
    select m.tenant_id, gen_random_uuid(), m.collection_id, p_to, m.place, m.added_at from public.collection_member m
    where m.tenant_id = app.tenant() and m.series_id = p_from on conflict do nothing;
  insert into public.series_rating (tenant_id, account_id, series_id, id, rating, notes, created_at, updated_at)
    select r.tenant_id, r.account_id, p_to, gen_random_uuid(), r.rating, r.notes, r.created_at, r.updated_at from public.series_rating r
    where r.tenant_id = app.tenant() and r.series_id = p_from on conflict do nothing;
  insert into public.external_id (tenant_id, id, series_id, source, external_id, external_url, metadata_hash, last_synced_at, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.source, x.external_id, x.external_url, x.metadata_hash, x.last_synced_at, x.created_at, x.updated_at
    from public.external_id x where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  insert into public.external_link (tenant_id, id, series_id, source_name, url, external_id, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.source_name, x.url, x.external_id, x.created_at, x.updated_at
    from public.external_link x where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  update public.series_cover c set series_id = p_to where c.tenant_id = app.tenant() and c.series_id = p_from
    and not exists (select from public.series_cover o where o.tenant_id = c.tenant_id and o.series_id = p_to and o.fingerprint = c.fingerprint);
  update public.series h set cover_source = coalesce((select 'custom:' || o.id from public.series_cover c
      join public.series_cover o on o.tenant_id = c.tenant_id and o.series_id = p_to and o.fingerprint = c.fingerprint
      where c.tenant_id = n.tenant_id and n.cover_source = 'custom:' || c.id), n.cover_source)
    from public.series n
    where n.tenant_id = app.tenant() and n.id = p_from and n.cover_source is not null
      and h.tenant_id = n.tenant_id and h.id = p_to and h.cover_source is null;
  insert into public.external_rating (tenant_id, id, series_id, source_name, rating, vote_count, fetched_at, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.source_name, x.rating, x.vote_count, x.fetched_at, x.created_at, x.updated_at
    from public.external_rating x where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  insert into public.alternate_title (tenant_id, id, series_id, label, title, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.label, x.title, x.created_at, x.updated_at from public.alternate_title x
    join public.series s on s.tenant_id = x.tenant_id and s.id = p_to and not 'alternateTitles' = any(s.locks)
    where x.tenant_id = app.tenant() and x.series_id = p_from and not exists (select from public.alternate_title y
      where y.tenant_id = x.tenant_id and y.series_id = p_to and y.label = x.label);
  insert into public.series_genre (tenant_id, series_id, genre_id)
    select x.tenant_id, p_to, x.genre_id from public.series_genre x
    join public.series s on s.tenant_id = x.tenant_id and s.id = p_to and not 'genres' = any(s.locks)
    where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  insert into public.series_tag (tenant_id, series_id, tag_id)
    select x.tenant_id, p_to, x.tag_id from public.series_tag x
    join public.series s on s.tenant_id = x.tenant_id and s.id = p_to and not 'tags' = any(s.locks)
    where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function app.enter(p_tenant uuid, p_account uuid, p_generation integer, p_key bytea, p_permission text,
  out account_id uuid, out username text, out email text, out role text, out email_verified boolean,
  out extra text[], out permissions text[])
language plpgsql as $$
declare
  v_key public.api_key;
  v_account public.account;
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  if p_key is not null then
    select * into v_key from public.api_key k where k.tenant_id = p_tenant and k.account_id = p_account and k.hash = p_key;
    if not found or not v_key.is_active or v_key.expires_at <= now() then
      raise exception 'The API key is invalid, disabled or expired' using errcode = 'LB401';
    end if;
  end if;
  select * into v_account from public.account a where a.tenant_id = p_tenant and a.id = p_account;
  if not found or not v_account.is_active then
    raise exception 'The user is unknown or disabled' using errcode = 'LB401';
  end if;
  if p_generation is not null and p_generation <> v_account.generation then
    raise exception 'The session has ended; sign in again' using errcode = 'LB401';
  end if;
  permissions := app.role_permissions(v_account.role) || v_account.permissions;
  if v_key.id is not null then
    permissions := array(select unnest(permissions) intersect select unnest(v_key.permissions));
    if v_key.last_used_at is null or v_key.last_used_at < now() - interval '5 minutes' then
      update public.api_key k set last_used_at = now() where k.tenant_id = p_tenant and k.id = (
        select l.id from public.api_key l where l.tenant_id = p_tenant and l.id = v_key.id for no key update skip locked);
    end if;
  end if;
  if p_permission <> '' and not p_permission = any(permissions) then
    raise exception 'Missing required permission: %', p_permission using errcode = 'LB403';
  end if;
  account_id := v_account.id;
  username := v_account.username;
  email := v_account.email;
  role := v_account.role;
  email_verified := v_account.email_verified;
  extra := v_account.permissions;
  perform set_config('app.account', account_id::text, true),
    set_config('statement_timeout', coalesce(nullif(current_setting('app.request_timeout', true), ''), '2s'), true);
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function app.find(p_in text, p_query text) returns table (id uuid, score real)
language plpgsql stable rows 100 security definer set search_path = pg_catalog, public as $$
declare
  v_table constant text := case p_in when 'series' then 'public.series' when 'book' then 'public.book' end;
  v_fuzzy constant boolean := coalesce((select s.value = 'true' from public.setting s
    where s.tenant_id = app.tenant() and s.key = 'search.fuzzy.enabled'), false);
  v_words text;
  v_found text;
begin
  -- As constants, from which the planner tells what is rare.
  select string_agg(format('t.search_title like %L', '%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%'), ' and ') into v_words
    from unnest(string_to_array(p_query, ' ')) w where w <> '';
  if v_words is null then
    return;
  end if;
  perform set_config('pg_trgm.word_similarity_threshold', '0.4', true); -- two letters of six in each other's place
  v_found := format($q$
    select t.id, (case when t.search_title = $1 then 4 when starts_with(t.search_title, $1) then 3
      when strpos(' ' || t.search_title || ' ', ' ' || $1 || ' ') > 0 then 2 when strpos(t.search_title, $1) > 0 then 1 else %s end)::real
    from %s t where t.tenant_id = %L and (%s %s)$q$,
    case when v_fuzzy then 'word_similarity($1, t.search_title)' else '0' end, v_table, app.tenant(), v_words,
    case when v_fuzzy then format('or %L <%% t.search_title', p_query) end);
  if p_in = 'book' then -- each kind has its index
    v_found := v_found || ' and t.analyzed union all ' || v_found || ' and not t.analyzed';
  end if;
  return query execute 'select * from (' || v_found || ') f limit 20000' using p_query;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function app.hand_series(p_from uuid, p_to uuid) returns void language sql as $$
  insert into public.wanted (tenant_id, account_id, id, series_id, place, added_at)
    select w.tenant_id, w.account_id, gen_random_uuid(), p_to, w.place, w.added_at from public.wanted w
    where w.tenant_id = app.tenant() and w.series_id = p_from on conflict do nothing;
  insert into public.collection_member (tenant_id, id, collection_id, series_id, place, added_at)
    select m.tenant_id, gen_random_uuid(), m.collection_id, p_to, m.place, m.added_at from public.collection_member m
    where m.tenant_id = app.tenant() and m.series_id = p_from on conflict do nothing;
  insert into public.series_rating (tenant_id, account_id, series_id, id, rating, notes, created_at, updated_at)
    select r.tenant_id, r.account_id, p_to, gen_random_uuid(), r.rating, r.notes, r.created_at, r.updated_at from public.series_rating r
    where r.tenant_id = app.tenant() and r.series_id = p_from on conflict do nothing;
  insert into public.external_id (tenant_id, id, series_id, source, external_id, external_url, metadata_hash, last_synced_at, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.source, x.external_id, x.external_url, x.metadata_hash, x.last_synced_at, x.created_at, x.updated_at
    from public.external_id x where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  insert into public.external_link (tenant_id, id, series_id, source_name, url, external_id, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.source_name, x.url, x.external_id, x.created_at, x.updated_at
    from public.external_link x where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  update public.series_cover c set series_id = p_to where c.tenant_id = app.tenant() and c.series_id = p_from
    and not exists (select from public.series_cover o where o.tenant_id = c.tenant_id and o.series_id = p_to and o.fingerprint = c.fingerprint);
  update public.series h set cover_source = coalesce((select 'custom:' || o.id from public.series_cover c
      join public.series_cover o on o.tenant_id = c.tenant_id and o.series_id = p_to and o.fingerprint = c.fingerprint
      where c.tenant_id = n.tenant_id and n.cover_source = 'custom:' || c.id), n.cover_source)
    from public.series n
    where n.tenant_id = app.tenant() and n.id = p_from and n.cover_source is not null
      and h.tenant_id = n.tenant_id and h.id = p_to and h.cover_source is null;
  insert into public.external_rating (tenant_id, id, series_id, source_name, rating, vote_count, fetched_at, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.source_name, x.rating, x.vote_count, x.fetched_at, x.created_at, x.updated_at
    from public.external_rating x where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  insert into public.alternate_title (tenant_id, id, series_id, label, title, created_at, updated_at)
    select x.tenant_id, gen_random_uuid(), p_to, x.label, x.title, x.created_at, x.updated_at from public.alternate_title x
    join public.series s on s.tenant_id = x.tenant_id and s.id = p_to and not 'alternateTitles' = any(s.locks)
    where x.tenant_id = app.tenant() and x.series_id = p_from and not exists (select from public.alternate_title y
      where y.tenant_id = x.tenant_id and y.series_id = p_to and y.label = x.label);
  insert into public.series_genre (tenant_id, series_id, genre_id)
    select x.tenant_id, p_to, x.genre_id from public.series_genre x
    join public.series s on s.tenant_id = x.tenant_id and s.id = p_to and not 'genres' = any(s.locks)
    where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
  insert into public.series_tag (tenant_id, series_id, tag_id)
    select x.tenant_id, p_to, x.tag_id from public.series_tag x
    join public.series s on s.tenant_id = x.tenant_id and s.id = p_to and not 'tags' = any(s.locks)
    where x.tenant_id = app.tenant() and x.series_id = p_from on conflict do nothing;
$$;
-- +goose StatementEnd
-- +goose StatementBegin
do $$
declare
  v_table regclass;
begin
  for v_table in select p.polrelid from pg_policy p where p.polname = 'limited' loop
    execute format('drop policy limited on %s', v_table);
    execute format('revoke all on %s from longbox_limited', v_table);
  end loop;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace procedure app.protect(tbl regclass, system_wide boolean default false, tenant_column text default 'tenant_id')
language plpgsql as $$
begin
  execute format('alter table %s enable row level security', tbl);
  execute format('create policy tenant on %s to longbox_app using (%I = (select app.tenant())) with check (%I = (select app.tenant()))', tbl, tenant_column, tenant_column);
  if system_wide then
    execute format('create policy system on %s to longbox_system using (true) with check (true)', tbl);
  else
    execute format('create policy system on %s to longbox_system using (%I = (select app.tenant())) with check (%I = (select app.tenant()))', tbl, tenant_column, tenant_column);
  end if;
  execute format('grant select, insert, update, delete on %s to longbox_app, longbox_system', tbl);
end $$;
-- +goose StatementEnd
drop procedure app.limit_books(regclass);
drop procedure app.limit_series(regclass, text);
drop function app.visible(text);
drop function app.total(text, uuid);
drop function app.must_see_all();
drop function app.administers();
drop function app.limited();
drop function app.denied();
drop function app.allowed();
drop table sharing_grant, access_group_member, access_group, series_sharing_tag, sharing_tag;
revoke execute on function app.tenant_by_host(text), app.komga_prefix(text), app.gather_statistics(bigint), app.find(text, text) from longbox_limited;
revoke usage on schema app, public from longbox_limited;
