-- A scan whose files were gone counts as one with the next for a day. Without that limit, a file that is gone in every scan
-- (a link that leads nowhere, a download that is always under way) would keep books that were added or removed weeks apart
-- in one look, and one could take the other's place.

-- +goose Up
-- +goose StatementBegin
create or replace function app.scans_since(p_library uuid, p_scan uuid) returns timestamptz language plpgsql stable as $$
begin
  if p_scan is null then
    return null;
  end if;
  return (select min(t.created_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.created_at > coalesce(
      (select max(c.created_at) from public.scan f join public.task c on c.tenant_id = f.tenant_id and c.id = f.id
        where f.tenant_id = app.tenant() and f.library_id = p_library and c.status = 'completed' and (f.files_gone = 0 or c.completed_at < now() - interval '1 day') and coalesce(c.params ->> 'path', '') = ''), '-infinity'));
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.scanned_at(p_library uuid) returns timestamptz language plpgsql stable as $$
begin
  return (select max(t.completed_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.status = 'completed' and (s.files_gone = 0 or t.completed_at < now() - interval '1 day') and coalesce(t.params ->> 'path', '') = '');
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
        where f.tenant_id = app.tenant() and f.library_id = p_library and c.status = 'completed' and f.files_gone = 0 and coalesce(c.params ->> 'path', '') = ''), '-infinity'));
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.scanned_at(p_library uuid) returns timestamptz language plpgsql stable as $$
begin
  return (select max(t.completed_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.status = 'completed' and s.files_gone = 0 and coalesce(t.params ->> 'path', '') = '');
end $$;
-- +goose StatementEnd
