-- What a plugin has written into a book (filled, a list of names in its metadata) stays where the file says nothing.

-- +goose Up
-- As 00002 has it, with what was filled and p_new has not.
-- +goose StatementBegin
create or replace function app.keep_locked(p_new jsonb, p_old jsonb, p_locks text[]) returns jsonb language sql immutable as $$
  select (n.said - array(select regexp_replace(k, '(Json)?Lock$', '') from unnest(p_locks) k))
    || coalesce((select jsonb_object_agg(f, p_old -> f) from (select regexp_replace(k, '(Json)?Lock$', '') f from unnest(p_locks) k) l where p_old ? f), '{}')
    || case when 'authorsJsonLock' = any(p_locks) or not p_locks && '{writerLock,pencillerLock,inkerLock,coloristLock,lettererLock,coverArtistLock,editorLock,translatorLock}'::text[]
      then '{}' else jsonb_build_object('authors', coalesce((select jsonb_agg(x.a) from (
        select a from jsonb_array_elements(coalesce(n.said -> 'authors', '[]')) a where not replace(a ->> 'role', 'cover_artist', 'coverArtist') || 'Lock' = any(p_locks)
        union all
        select a from jsonb_array_elements(coalesce(p_old -> 'authors', '[]')) a where replace(a ->> 'role', 'cover_artist', 'coverArtist') || 'Lock' = any(p_locks)) x), '[]')) end
  from (select p_new || coalesce((select jsonb_object_agg(f, p_old -> f) || jsonb_build_object('filled', jsonb_agg(f))
    from jsonb_array_elements_text(p_old -> 'filled') f where p_old ? f and not p_new ? f), '{}') as said) n
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function app.keep_locked(p_new jsonb, p_old jsonb, p_locks text[]) returns jsonb language sql immutable as $$
  select (p_new - array(select regexp_replace(k, '(Json)?Lock$', '') from unnest(p_locks) k))
    || coalesce((select jsonb_object_agg(f, p_old -> f) from (select regexp_replace(k, '(Json)?Lock$', '') f from unnest(p_locks) k) l where p_old ? f), '{}')
    || case when 'authorsJsonLock' = any(p_locks) or not p_locks && '{writerLock,pencillerLock,inkerLock,coloristLock,lettererLock,coverArtistLock,editorLock,translatorLock}'::text[]
      then '{}' else jsonb_build_object('authors', coalesce((select jsonb_agg(x.a) from (
        select a from jsonb_array_elements(coalesce(p_new -> 'authors', '[]')) a where not replace(a ->> 'role', 'cover_artist', 'coverArtist') || 'Lock' = any(p_locks)
        union all
        select a from jsonb_array_elements(coalesce(p_old -> 'authors', '[]')) a where replace(a ->> 'role', 'cover_artist', 'coverArtist') || 'Lock' = any(p_locks)) x), '[]')) end
$$;
-- +goose StatementEnd
