-- Books that people have read or edited follow their content to another library also where a book already has it that came to its place
-- no earlier than a file would have had to: one that came back there, or moved within that library.

-- +goose Up
set local lock_timeout = '5s';

-- When the book came back, or followed its content, to where it is; null where it has always been there.
alter table book add column placed_at timestamptz;

-- +goose StatementBegin
do $$
declare
  v_content constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_over constant text := pg_get_functiondef('app.follow_over(uuid, uuid, uuid[])'::regprocedure);
  v_then text := replace(v_content, 'revision = k.revision + 1, updated_at = now()
    from unnest(v_who, v_where)', 'revision = k.revision + 1, updated_at = now(), placed_at = now()
    from unnest(v_who, v_where)');
begin
  if v_then = v_content then
    raise 'app.follow_content is not the one of 00030';
  end if;
  execute v_then;

  v_then := replace(replace(replace(v_over,
    'coalesce(b.first_read_at, b.created_at) >= v_fresh));',
    'greatest(b.first_read_at, b.placed_at, b.created_at) >= v_fresh));'),
    'cross join lateral (select b.id, b.library_id from public.book b',
    'cross join lateral (select b.id, b.library_id, b.deleted_at >= v_since and (
            exists (select from public.progress p where p.tenant_id = v_tenant and p.book_id = b.id)
            or exists (select from public.completion d where d.tenant_id = v_tenant and d.book_id = b.id)
            or exists (select from public.book_metadata m where m.tenant_id = v_tenant and m.book_id = b.id and m.locks <> ''{}'')) as dear from public.book b'),
    'and (o.library_id = v_of and b.library_id <> v_of and coalesce(b.first_read_at, b.created_at) >= v_since
            or o.library_id <> v_of and b.library_id = v_of and (coalesce(b.first_read_at, b.created_at) >= v_fresh or b.id = any(p_books)))',
    'and (o.library_id = v_of and b.library_id <> v_of and (coalesce(b.first_read_at, b.created_at) >= v_since or o.dear and b.placed_at >= v_since)
            or o.library_id <> v_of and b.library_id = v_of and (coalesce(b.first_read_at, b.created_at) >= v_fresh or o.dear and b.placed_at >= v_fresh or b.id = any(p_books)))');
  if v_then not like '%greatest(%' or v_then not like '%as dear%' or v_then not like '%o.dear and b.placed_at >= v_fresh%' then
    raise 'app.follow_over is not the one of 00021';
  end if;
  execute v_then;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$
declare
  v_content constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_over constant text := pg_get_functiondef('app.follow_over(uuid, uuid, uuid[])'::regprocedure);
begin
  execute replace(v_content, ', placed_at = now()', '');
  execute replace(replace(replace(v_over, 'greatest(b.first_read_at, b.placed_at, b.created_at)', 'coalesce(b.first_read_at, b.created_at)'),
    ' or o.dear and b.placed_at >= v_since', ''), ' or o.dear and b.placed_at >= v_fresh', '');
end $$;
-- +goose StatementEnd
alter table book drop column placed_at;
