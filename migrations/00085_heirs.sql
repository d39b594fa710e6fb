-- Listeners are told of a series that has inherited from one that is gone: until commit the setting app.heirs names it.

-- +goose Up
-- As 00082 has it, with the setting.
-- +goose StatementBegin
create or replace function app.hand_left(p_series uuid[]) returns void language plpgsql as $$
declare
  v_pair record;
begin
  for v_pair in
    select s.id, s.heir, s.created_at <= n.created_at as older from public.series s join public.series n on n.tenant_id = s.tenant_id and n.id = s.heir
    where s.tenant_id = app.tenant() and s.id = any(p_series) order by s.path, s.id
  loop
    perform app.hand_series(v_pair.id, v_pair.heir);
    perform app.hand_releases(v_pair.id, v_pair.heir);
    perform app.hand_written(v_pair.id, v_pair.heir, v_pair.older);
    perform set_config('app.heirs', concat_ws(' ', nullif(current_setting('app.heirs', true), ''), v_pair.heir), true);
  end loop;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The function goes on naming them.
select 1;
