-- A scan whose files were gone when they were to be read leaves its work to the next one, which begins at once: books whose
-- names others had taken follow their content there too.

-- +goose Up
-- scans_since is since when books may have appeared or changed by scans that count as one with p_scan: the first one after
-- the last that was completed and found all files that it had listed. Null without a scan.
-- +goose StatementBegin
create or replace function app.scans_since(p_library uuid, p_scan uuid) returns timestamptz language plpgsql stable as $$
begin
  if p_scan is null then
    return null;
  end if;
  return (select min(t.created_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.created_at > coalesce(
      (select max(c.created_at) from public.scan f join public.task c on c.tenant_id = f.tenant_id and c.id = f.id
        where f.tenant_id = app.tenant() and f.library_id = p_library and c.status = 'completed' and f.files_gone = 0 and coalesce(c.params ->> 'path', '') = ''), '-infinity'));
end $$;
-- +goose StatementEnd

-- scanned_at is when the last such scan of all files was completed.
-- +goose StatementBegin
create or replace function app.scanned_at(p_library uuid) returns timestamptz language plpgsql stable as $$
begin
  return (select max(t.completed_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.status = 'completed' and s.files_gone = 0 and coalesce(t.params ->> 'path', '') = '');
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function app.scans_since(p_library uuid, p_scan uuid) returns timestamptz language plpgsql stable as $$
begin
  if p_scan is null then
    return null;
  end if;
  return (select min(t.created_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.created_at > coalesce(
      (select max(c.created_at) from public.scan f join public.task c on c.tenant_id = f.tenant_id and c.id = f.id
        where f.tenant_id = app.tenant() and f.library_id = p_library and c.status = 'completed' and coalesce(c.params ->> 'path', '') = ''), '-infinity'));
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.scanned_at(p_library uuid) returns timestamptz language plpgsql stable as $$
begin
  return (select max(t.completed_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.status = 'completed' and coalesce(t.params ->> 'path', '') = '');
end $$;
-- +goose StatementEnd
