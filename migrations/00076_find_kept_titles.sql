-- Other titles are found by what is kept of them, before and after they are filled. The index is there (00075), and the one
-- of before goes only then (00077): a step that is done again takes none away that is in use.

-- +goose Up
-- As 00069 has it, with the title that is kept.
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
      ('series', 'public.alternate_title', 't.series_id', 'coalesce(t.search_title, app.search_form(t.title))', 't.series_id'),
      ('book', 'public.book', 't.id', 't.search_title', 't.series_id')) v(kind, source, id, title, series) where v.kind = p_in
  loop
    -- As constants, from which the planner tells what is rare.
    select string_agg(format('%s like %L', v_of.title, '%' || regexp_replace(w, '([\\%_])', '\\\1', 'g') || '%'), ' and ') into v_words
      from unnest(string_to_array(p_query, ' ')) w where w <> '';
    if v_words is null then
      return;
    end if;
    v_one := format('select %s as id, %s as title from %s t where t.tenant_id = %L and (%s %s)', v_of.id, v_of.title, v_of.source, app.tenant(), v_words,
      case when v_fuzzy then format('or %L <%% %s', p_query, v_of.title) end);
    if app.limited() then -- else what this user may not see would take the places of what the user may
      v_one := v_one || ' and ' || app.visible(v_of.series);
    end if;
    v_found := concat_ws(' union all ', v_found, case when p_in = 'book' -- each kind has its index
      then format('(%1$s and t.analyzed offset 0) union all (%1$s and not t.analyzed offset 0)', v_one)
      else format('(%s offset 0)', v_one) end); -- which makes a title once, not for each comparison
  end loop;
  v_found := format($q$
    select f.id, (case when f.title = $1 then 4 when starts_with(f.title, $1) then 3
      when strpos(' ' || f.title || ' ', ' ' || $1 || ' ') > 0 then 2 when strpos(f.title, $1) > 0 then 1 else %s end)::real as score
    from (%s) f limit 20000$q$, case when v_fuzzy then 'word_similarity($1, f.title)' else '0' end, v_found);
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
    v_one := format('select %s as id, %s as title from %s t where t.tenant_id = %L and (%s %s)', v_of.id, v_of.title, v_of.source, app.tenant(), v_words,
      case when v_fuzzy then format('or %L <%% %s', p_query, v_of.title) end);
    if app.limited() then -- else what this user may not see would take the places of what the user may
      v_one := v_one || ' and ' || app.visible(v_of.series);
    end if;
    v_found := concat_ws(' union all ', v_found, case when p_in = 'book' -- each kind has its index
      then format('(%1$s and t.analyzed offset 0) union all (%1$s and not t.analyzed offset 0)', v_one)
      else format('(%s offset 0)', v_one) end); -- which makes a title once, not for each comparison
  end loop;
  v_found := format($q$
    select f.id, (case when f.title = $1 then 4 when starts_with(f.title, $1) then 3
      when strpos(' ' || f.title || ' ', ' ' || $1 || ' ') > 0 then 2 when strpos(f.title, $1) > 0 then 1 else %s end)::real as score
    from (%s) f limit 20000$q$, case when v_fuzzy then 'word_similarity($1, f.title)' else '0' end, v_found);
  if p_in = 'series' then
    v_found := 'select f.id, max(f.score) from (' || v_found || ') f group by f.id';
  end if;
  return query execute v_found using p_query;
end $$;
-- +goose StatementEnd
