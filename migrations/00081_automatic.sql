-- A collection that becomes automatic loses all members that were chosen, also those that are hidden from whoever makes
-- it so.

-- +goose Up
-- +goose StatementBegin
create function app.drop_chosen_members() returns trigger language plpgsql security definer set search_path = pg_catalog, public as $$
begin
  delete from public.collection_member where tenant_id = new.tenant_id and collection_id = new.id;
  return null;
end
$$;
-- +goose StatementEnd
revoke all on function app.drop_chosen_members() from public;
-- Of those that kept some.
delete from collection_member m using collection c where c.tenant_id = m.tenant_id and c.id = m.collection_id and c.condition is not null;
set local lock_timeout = '5s'; -- lists are locked
create trigger collection_automatic after update of condition on collection
  for each row when (new.condition is not null) execute function app.drop_chosen_members();

-- +goose Down
drop trigger collection_automatic on collection;
drop function app.drop_chosen_members();
