-- Books follow their content (00013) also to where it was first read, or took the place of other content, since the last scan
-- that was completed, though the file or the other content had been there for longer; and to files that were refused at first.

-- +goose Up

-- When the book was first read; null where that was before this column, and where it never was.
alter table book add column first_read_at timestamptz;

-- Files that the tenant's limit of books kept out.
alter table scan add column files_refused bigint not null default 0;

-- scanned_at is when the last scan of a whole library was completed: what its books had then is theirs.
-- +goose StatementBegin
create function app.scanned_at(p_library uuid) returns timestamptz language sql stable as $$
  select max(t.completed_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.status = 'completed' and coalesce(t.params ->> 'path', '') = '';
$$;
-- +goose StatementEnd

-- +goose StatementBegin
do $$
declare
  v_now constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_then constant text := replace(v_now, 'n.created_at >= v_since
          and (n.created_at >= v_scans', 'coalesce(n.first_read_at, n.created_at) >= v_since
          and (coalesce(n.first_read_at, n.created_at) >= v_scans');
  v_note constant text := pg_get_functiondef('app.note_displaced(uuid, uuid[], integer[], text[])'::regprocedure);
  v_noted constant text := replace(v_note, 'where d.at < v_since;', 'where d.at < greatest(v_since, app.scanned_at(v_library));');
begin
  if v_then = v_now or v_noted = v_note then
    raise 'app.follow_content or app.note_displaced is not the one of 00016 and 00008';
  end if;
  execute v_then;
  execute v_noted;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$
begin
  execute replace(pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure), 'coalesce(n.first_read_at, n.created_at)', 'n.created_at');
  execute replace(pg_get_functiondef('app.note_displaced(uuid, uuid[], integer[], text[])'::regprocedure), 'greatest(v_since, app.scanned_at(v_library))', 'v_since');
end $$;
-- +goose StatementEnd
drop function app.scanned_at;
alter table scan drop column files_refused;
alter table book drop column first_read_at;
