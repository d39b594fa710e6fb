-- Books that follow their content (00013): those that somebody has read or edited go first, whatever the names. One that nobody has, and
-- that stood for the content in between, took its place for good where it had the name of the file.

-- +goose Up
-- +goose StatementBegin
do $$
declare
  v_now constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_then constant text := replace(replace(replace(v_now, 'for v_pass in 1..4 loop', 'for v_pass in 1..8 loop -- dear or not, by name or not'),
    'u.second = (v_pass > 2)', 'u.second = (v_pass > 4) and (v_pass % 4 in (1, 2)) = (
          exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id)
          or exists (select from public.completion c where c.tenant_id = v_tenant and c.book_id = b.id)
          or exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> ''{}''))'),
    'exit when v_pass = 2 and', 'exit when v_pass = 4 and');
begin
  if v_then not like '%1..8 loop%' or v_then not like '%(v_pass > 4)%' or v_then not like '%v_pass = 4 and%' then
    raise 'app.follow_content is not the one of 00019';
  end if;
  execute v_then;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The same books follow, in another order.
select 1;
