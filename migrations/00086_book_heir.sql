-- What a device that was offline tells of a book that has turned out to be another one since is of that.

-- +goose Up
set local lock_timeout = '5s';
create table book_heir (
  tenant_id uuid not null,
  id        uuid not null, -- of a book that is no more
  book_id   uuid not null, -- the one that it was
  at        timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, book_id) references book on delete cascade
);
create index book_heir_book on book_heir (tenant_id, book_id);
create index book_heir_at on book_heir (tenant_id, at);
call app.protect('book_heir');
call app.limit_books('book_heir');

-- As 00061 has it, with heirs, for ninety days.
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
  delete from public.book_heir where tenant_id = app.tenant() and id = any(array(select h.id from public.book_heir h
    where h.tenant_id = app.tenant() and h.at < now() - interval '90 days' for update skip locked)); -- whoever else forgets them
  update public.book_heir h set book_id = u.heir from unnest(p_from, p_to) as u(id, heir) where h.tenant_id = app.tenant() and h.book_id = u.id;
  insert into public.book_heir (tenant_id, id, book_id) select app.tenant(), u.id, u.heir from unnest(p_from, p_to) as u(id, heir)
    on conflict (tenant_id, id) do update set book_id = excluded.book_id, at = excluded.at;
$$;
-- +goose StatementEnd

-- +goose Down
set local lock_timeout = '5s';
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
drop table book_heir;
