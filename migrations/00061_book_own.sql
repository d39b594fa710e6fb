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
    where h.tenant_id = n.tenant_id and h.id = u.heir and h.cover_source is null;
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
-- The functions go back to what 00054 has.
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
drop table book_tag, book_genre, book_cover;
alter table book drop column cover_source;
