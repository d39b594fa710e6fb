-- Series are found by their other titles, too. Functions are replaced, and the index made anew, so that what was interrupted
-- can be run again.

-- +goose NO TRANSACTION
-- +goose Up
-- search_form is a title as naming.Normalize writes it: lower case, single spaces, Latin letters without accents.
-- +goose StatementBegin
create or replace function app.search_form(p_title text) returns text language sql immutable strict parallel safe as $$
  select pg_catalog.normalize(pg_catalog.btrim(pg_catalog.regexp_replace(pg_catalog.regexp_replace(pg_catalog.normalize(pg_catalog.lower(p_title), 'NFD'),
    '([a-z\u00aa\u00ba\u00df-\u02b8\u1d00-\u1d25\u1e00-\u1eff])[\u0300-\u036f]+', '\1', 'g'), '[\s\u0085\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g')), 'NFC')
$$;
-- +goose StatementEnd
drop index if exists alternate_title_find;
create index concurrently alternate_title_find on alternate_title using gin (tenant_id, app.search_form(title) gin_trgm_ops) with (gin_pending_list_limit = 512);

-- As 00057 has it, with the other titles of series: a series counts once, by the best of its titles.
-- +goose StatementBegin
create or replace function app.find(p_in text, p_query text) returns table (id uuid, score real)
language plpgsql stable rows 100 security definer set search_path = pg_catalog, public as $$
declare
  v_fuzzy constant boolean := coalesce((select s.value = 'true' from public.setting s
    where s.tenant_id = app.tenant() and s.key = 'search.fuzzy.enabled'), false);
  v_of record;
  v_words text;
  v_one text;
  v_found text;
begin
  perform set_config('pg_trgm.word_similarity_threshold', '0.4', true); -- two letters of six in each other's place
  for v_of in select * from (values ('series', 'public.series', 't.id', 't.search_title', 't.id'),
      ('series', 'public.alternate_title', 't.series_id', 'app.search_form(t.title)', 't.series_id'),
      ('book', 'public.book', 't.id', 't.search_title', 't.series_id')) v(kind, source, id, title, series) where v.kind = p_in
  loop
    -- As constants, from which the planner tells what is rare.
    select string_agg(format('%s like %L', v_of.title, '%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%'), ' and ') into v_words
      from unnest(string_to_array(p_query, ' ')) w where w <> '';
    if v_words is null then
      return;
    end if;
    v_one := format($q$
      select %1$s as id, (case when %2$s = $1 then 4 when starts_with(%2$s, $1) then 3
        when strpos(' ' || %2$s || ' ', ' ' || $1 || ' ') > 0 then 2 when strpos(%2$s, $1) > 0 then 1 else %3$s end)::real as score
      from %4$s t where t.tenant_id = %5$L and (%6$s %7$s)$q$,
      v_of.id, v_of.title, case when v_fuzzy then format('word_similarity($1, %s)', v_of.title) else '0' end, v_of.source, app.tenant(), v_words,
      case when v_fuzzy then format('or %L <%% %s', p_query, v_of.title) end);
    if app.limited() then -- else what this user may not see would take the places of what the user may
      v_one := v_one || ' and ' || app.visible(v_of.series);
    end if;
    if p_in = 'book' then -- each kind has its index
      v_one := v_one || ' and t.analyzed union all ' || v_one || ' and not t.analyzed';
    end if;
    v_found := concat_ws(' union all ', v_found, v_one);
  end loop;
  v_found := 'select * from (' || v_found || ') f limit 20000';
  if p_in = 'series' then
    v_found := 'select f.id, max(f.score) from (' || v_found || ') f group by f.id';
  end if;
  return query execute v_found using p_query;
end $$;
-- +goose StatementEnd

-- +goose Down
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
drop index if exists alternate_title_find;
drop function if exists app.search_form(text);
