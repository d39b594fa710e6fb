-- Who deletes their read history also deletes what they have read of series that are hidden from them now: it would come
-- back with the series.

-- +goose Up
-- forget_history marks up to p_most of the caller's completions as forgotten, and returns how many.
-- +goose StatementBegin
create function app.forget_history(p_most integer) returns bigint language plpgsql security definer set search_path = pg_catalog, public as $$
declare
  v_forgotten bigint;
begin
  update public.completion c set forgotten = true where c.tenant_id = app.tenant() and c.account_id = app.account() and c.id = any(array(
    select f.id from public.completion f where f.tenant_id = app.tenant() and f.account_id = app.account() and not f.forgotten limit p_most));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end $$;
-- +goose StatementEnd
revoke all on function app.forget_history(integer) from public;
grant execute on function app.forget_history(integer) to longbox_app, longbox_limited;

-- +goose Down
drop function app.forget_history(integer);
