-- Where a series or book goes on in the place of a newer one, what people have said of the newer one is said of the
-- older one then, unless the older one has its own.

-- +goose Up
-- Removes the genres or tags (p_table) that no series has, and tells their names. Whoever gives a series one holds its
-- row: each statement sees what was done until it begins, so that what got a series while the first one waited is kept
-- by the second.
-- +goose StatementBegin
create function app.clean_terms(p_table text) returns setof text language plpgsql as $$
declare
  v_unused constant text := format('t.tenant_id = app.tenant() and not exists (select from public.series_%1$s x where x.tenant_id = t.tenant_id and x.%1$s_id = t.id)', p_table);
  v_ids uuid[];
begin
  execute format('select array(select t.id from public.%I t where %s order by lower(t.name) for update)', p_table, v_unused) into v_ids;
  return query execute format('delete from public.%I t where %s and t.id = any($1) returning t.name', p_table, v_unused) using v_ids;
end $$;
-- +goose StatementEnd

-- As 00050 has it, with ids and links.
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

-- As 00050 has it, with ratings, ids, links and covers, and with the titles, genres and tags that are not locked.
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

-- +goose Down
drop function app.clean_terms(text);
-- The functions go back to what 00050 has.
-- +goose StatementBegin
create or replace function app.hand_books(p_from uuid[], p_to uuid[]) returns void language sql as $$
  insert into public.wanted (tenant_id, account_id, id, book_id, place, added_at)
    select w.tenant_id, w.account_id, gen_random_uuid(), u.heir, w.place, w.added_at from unnest(p_from, p_to) as u(id, heir)
    join public.wanted w on w.tenant_id = app.tenant() and w.book_id = u.id on conflict do nothing;
  insert into public.collection_member (tenant_id, id, collection_id, book_id, place, added_at)
    select m.tenant_id, gen_random_uuid(), m.collection_id, u.heir, m.place, m.added_at from unnest(p_from, p_to) as u(id, heir)
    join public.collection_member m on m.tenant_id = app.tenant() and m.book_id = u.id on conflict do nothing;
$$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function app.hand_series(p_from uuid, p_to uuid) returns void language sql as $$
  insert into public.wanted (tenant_id, account_id, id, series_id, place, added_at)
    select w.tenant_id, w.account_id, gen_random_uuid(), p_to, w.place, w.added_at from public.wanted w
    where w.tenant_id = app.tenant() and w.series_id = p_from on conflict do nothing;
  insert into public.collection_member (tenant_id, id, collection_id, series_id, place, added_at)
    select m.tenant_id, gen_random_uuid(), m.collection_id, p_to, m.place, m.added_at from public.collection_member m
    where m.tenant_id = app.tenant() and m.series_id = p_from on conflict do nothing;
$$;
-- +goose StatementEnd
