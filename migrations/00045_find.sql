-- Series and books are found by what people remember of their titles. Under row-level security Postgres uses no index
-- of trigrams for that, since neither like nor <% is leakproof: app.find runs as the owner and looks in the entered
-- tenant alone.

-- +goose Up
create extension if not exists pg_trgm with schema public;
create extension if not exists btree_gin with schema public; -- the tenant is the first column of the index

-- find looks for p_query, a title as naming.Normalize writes it, in the titles of p_in: 'series' or 'book'. What is
-- found has all its words somewhere; the score is highest for the title itself (4), then what begins with the query
-- (3), a word or words of it (2), all in one piece (1). Where the setting search.fuzzy.enabled says so, what only looks
-- like the query is found too (below 1: how much). At most 20,000 are found, any of those that there are: all in whose
-- titles a common word stands would take seconds.
-- +goose StatementBegin
create function app.find(p_in text, p_query text) returns table (id uuid, score real)
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
revoke execute on function app.find(text, text) from public;
grant execute on function app.find(text, text) to longbox_app;

-- +goose Down
drop function app.find(text, text);
drop extension btree_gin;
drop extension pg_trgm;
