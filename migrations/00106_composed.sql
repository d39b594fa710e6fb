-- Names from files are in composed characters (NFC), too, as those that people write and as all are looked up.

-- +goose Up
set local lock_timeout = '5s';
-- Of genres and tags whose composed names are the same, one stays and gets what the others have.
-- +goose StatementBegin
do $$
declare
  v_kind text;
  v_of text;
begin
  foreach v_kind in array array['genre', 'tag'] loop
    execute format('create temporary table twin on commit drop as
      select g.tenant_id, g.id, first_value(g.id) over (partition by g.tenant_id, lower(normalize(g.name)) order by g.name is nfc normalized desc, g.id) as stays
      from public.%1$I g where (g.tenant_id, lower(normalize(g.name))) in (
        select o.tenant_id, lower(normalize(o.name)) from public.%1$I o where o.name is not nfc normalized)', v_kind);
    -- Waits for workers that add links to the others.
    execute format('select from public.%I g where (g.tenant_id, g.id) in (select tenant_id, id from twin) order by g.tenant_id, lower(g.name), g.id for update', v_kind);
    foreach v_of in array array['series', 'book'] loop
      execute format('insert into public.%1$I (tenant_id, %2$I, %3$I) select x.tenant_id, x.%2$I, w.stays from twin w
        join public.%1$I x on x.tenant_id = w.tenant_id and x.%3$I = w.id where w.id <> w.stays on conflict do nothing',
        v_of || '_' || v_kind, v_of || '_id', v_kind || '_id');
    end loop;
    execute format('delete from public.%I g using twin w where g.tenant_id = w.tenant_id and g.id = w.id and w.id <> w.stays', v_kind);
    execute format('update public.%I set name = normalize(name) where name is not nfc normalized', v_kind);
    drop table twin;
  end loop;
end $$;
-- +goose StatementEnd

-- composed are the same values with all texts but custom metadata in composed characters.
-- +goose StatementBegin
create function app.composed(p jsonb) returns jsonb language plpgsql immutable as $$
begin
  return case jsonb_typeof(p)
    when 'string' then to_jsonb(normalize(p #>> '{}'))
    when 'array' then coalesce((select jsonb_agg(app.composed(e) order by n) from jsonb_array_elements(p) with ordinality x(e, n)), '[]')
    when 'object' then coalesce((select jsonb_object_agg(key, case key when 'customMetadata' then value else app.composed(value) end) from jsonb_each(p)), '{}')
    else p end;
end $$;
-- +goose StatementEnd
-- Before the series, as a worker locks them.
update book_metadata set metadata = app.composed(metadata) where metadata::text is not nfc normalized;
update series set publisher = normalize(publisher), imprint = normalize(imprint), authors = app.composed(authors)
  where publisher is not nfc normalized or imprint is not nfc normalized or authors::text is not nfc normalized;
update alternate_title set title = normalize(title) where title is not nfc normalized;
update sidecar set document = app.composed(document) where document::text is not nfc normalized;
drop function app.composed;

-- +goose Down
select 1;
