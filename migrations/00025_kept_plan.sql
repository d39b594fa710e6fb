-- Functions in SQL that are not inlined are planned at each call; of those in PL/pgSQL a session keeps the plans. These ran for each
-- batch of analysed books and took longer to plan than to run.

-- +goose Up
-- +goose StatementBegin
create or replace function app.add_book_counts(p_tenant uuid[], p_library uuid[], p_series uuid[], p_books bigint[], p_bytes bigint[], p_pages bigint[])
returns void language plpgsql as $$
begin
  insert into public.library_count as c (tenant_id, library_id, books, bytes, pages)
  select d.t, d.l, sum(d.b), sum(d.y), sum(d.p)
  from unnest(p_tenant, p_library, p_books, p_bytes, p_pages) as d(t, l, b, y, p) group by 1, 2
  on conflict (tenant_id, library_id) do update
    set books = c.books + excluded.books, bytes = c.bytes + excluded.bytes, pages = c.pages + excluded.pages;
  update public.series s
  set book_count = s.book_count + d.b, file_size = s.file_size + d.y, page_count = s.page_count + d.p,
      updated_at = case when d.b <> 0 then now() else s.updated_at end
  from (select t, s, sum(b) b, sum(y) y, sum(p) p
        from unnest(p_tenant, p_series, p_books, p_bytes, p_pages) as u(t, s, b, y, p) group by 1, 2) d
  where s.tenant_id = d.t and s.id = d.s;
end $$;
-- +goose StatementEnd

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
create or replace function app.follow_since(p_library uuid, p_scan uuid) returns timestamptz language plpgsql stable as $$
begin
  return least(app.scans_since(p_library, p_scan),
    greatest(now() - interval '1 hour', case when p_scan is not null then app.scanned_at(p_library) end));
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.scanned_at(p_library uuid) returns timestamptz language plpgsql stable as $$
begin
  return (select max(t.completed_at) from public.scan s join public.task t on t.tenant_id = s.tenant_id and t.id = s.id
    where s.tenant_id = app.tenant() and s.library_id = p_library and t.status = 'completed' and coalesce(t.params ->> 'path', '') = '');
end $$;
-- +goose StatementEnd

-- +goose Down
-- They do the same in either language, and go with 00002, 00008, 00013 and 00018.
select 1;
