-- A book that is about to give its place up is locked before what it holds is read: progress and edits that are committed until then
-- go along, and later ones wait and find the book gone. They were deleted with it where they came between.

-- +goose Up
-- +goose StatementBegin
do $$
declare
  v_content constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_over constant text := pg_get_functiondef('app.follow_over(uuid, uuid, uuid[])'::regprocedure);
  v_lock constant text := '  perform from public.book b where b.tenant_id = v_tenant and b.id = any(v_who || v_where) order by b.id for update; -- 00035
';
  v_check constant text := '  select array_agg(u.who), array_agg(u.place) into v_who, v_where from unnest(v_who, v_where) as u(who, place) -- 00035
    where exists (select from public.displaced d where d.tenant_id = v_tenant and d.book_id = u.place and d.at >= v_since)
      or not exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = u.place and m.locks <> ''{}'');
  if v_who is null then
    return;
  end if; -- 00035
';
  v_then text := replace(v_content, '  v_staying := array(', v_lock || v_check || '  v_staying := array(');
begin
  if v_then = v_content then
    raise 'app.follow_content is not the one of 00031';
  end if;
  execute v_then;
  -- In the first pass, so that the second sees what was written meanwhile; and again for books that only the second finds.
  v_then := replace(replace(v_over, '    end if;
  end loop;
  v_old := array(', v_lock || '    end if;
  end loop;
  v_old := array('), '  v_old := array(', v_lock || '  v_old := array(');
  if v_then = v_over or v_then not like '%-- 00035%-- 00035%' then
    raise 'app.follow_over is not the one of 00031';
  end if;
  execute v_then;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$
declare
  v_marked constant text := '  perform from public\.book b where b\.tenant_id = v_tenant and b\.id = any\(v_who \|\| v_where\) order by b\.id for update; -- 00035\n';
begin
  execute regexp_replace(regexp_replace(pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure), v_marked, '', 'g'),
    '  select array_agg\(u\.who\), array_agg\(u\.place\) into v_who, v_where from unnest\(v_who, v_where\) as u\(who, place\) -- 00035.*end if; -- 00035\n', '');
  execute regexp_replace(pg_get_functiondef('app.follow_over(uuid, uuid, uuid[])'::regprocedure), v_marked, '', 'g');
end $$;
-- +goose StatementEnd
