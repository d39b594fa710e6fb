-- The note of when an API key was last used waits for nobody: a long request of a key held all others of the same key, which
-- would have noted the same.

-- +goose Up
-- +goose StatementBegin
create or replace function app.enter(p_tenant uuid, p_account uuid, p_generation integer, p_key bytea, p_permission text,
  out account_id uuid, out username text, out email text, out role text, out email_verified boolean,
  out extra text[], out permissions text[])
language plpgsql as $$
declare
  v_key public.api_key;
  v_account public.account;
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  if p_key is not null then
    select * into v_key from public.api_key k where k.tenant_id = p_tenant and k.account_id = p_account and k.hash = p_key;
    if not found or not v_key.is_active or v_key.expires_at <= now() then
      raise exception 'The API key is invalid, disabled or expired' using errcode = 'LB401';
    end if;
  end if;
  select * into v_account from public.account a where a.tenant_id = p_tenant and a.id = p_account;
  if not found or not v_account.is_active then
    raise exception 'The user is unknown or disabled' using errcode = 'LB401';
  end if;
  if p_generation is not null and p_generation <> v_account.generation then
    raise exception 'The session has ended; sign in again' using errcode = 'LB401';
  end if;
  permissions := app.role_permissions(v_account.role) || v_account.permissions;
  if v_key.id is not null then
    permissions := array(select unnest(permissions) intersect select unnest(v_key.permissions));
    if v_key.last_used_at is null or v_key.last_used_at < now() - interval '5 minutes' then
      update public.api_key k set last_used_at = now() where k.tenant_id = p_tenant and k.id = (
        select l.id from public.api_key l where l.tenant_id = p_tenant and l.id = v_key.id for no key update skip locked);
    end if;
  end if;
  if p_permission <> '' and not p_permission = any(permissions) then
    raise exception 'Missing required permission: %', p_permission using errcode = 'LB403';
  end if;
  account_id := v_account.id;
  username := v_account.username;
  email := v_account.email;
  role := v_account.role;
  email_verified := v_account.email_verified;
  extra := v_account.permissions;
  perform set_config('app.account', account_id::text, true),
    set_config('statement_timeout', coalesce(nullif(current_setting('app.request_timeout', true), ''), '2s'), true);
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function app.enter(p_tenant uuid, p_account uuid, p_generation integer, p_key bytea, p_permission text,
  out account_id uuid, out username text, out email text, out role text, out email_verified boolean,
  out extra text[], out permissions text[])
language plpgsql as $$
declare
  v_key public.api_key;
  v_account public.account;
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
  if p_key is not null then
    select * into v_key from public.api_key k where k.tenant_id = p_tenant and k.account_id = p_account and k.hash = p_key;
    if not found or not v_key.is_active or v_key.expires_at <= now() then
      raise exception 'The API key is invalid, disabled or expired' using errcode = 'LB401';
    end if;
  end if;
  select * into v_account from public.account a where a.tenant_id = p_tenant and a.id = p_account;
  if not found or not v_account.is_active then
    raise exception 'The user is unknown or disabled' using errcode = 'LB401';
  end if;
  if p_generation is not null and p_generation <> v_account.generation then
    raise exception 'The session has ended; sign in again' using errcode = 'LB401';
  end if;
  permissions := app.role_permissions(v_account.role) || v_account.permissions;
  if v_key.id is not null then
    permissions := array(select unnest(permissions) intersect select unnest(v_key.permissions));
    if v_key.last_used_at is null or v_key.last_used_at < now() - interval '5 minutes' then
      update public.api_key k set last_used_at = now() where k.tenant_id = p_tenant and k.id = v_key.id;
    end if;
  end if;
  if p_permission <> '' and not p_permission = any(permissions) then
    raise exception 'Missing required permission: %', p_permission using errcode = 'LB403';
  end if;
  account_id := v_account.id;
  username := v_account.username;
  email := v_account.email;
  role := v_account.role;
  email_verified := v_account.email_verified;
  extra := v_account.permissions;
  perform set_config('app.account', account_id::text, true),
    set_config('statement_timeout', coalesce(nullif(current_setting('app.request_timeout', true), ''), '2s'), true);
end $$;
-- +goose StatementEnd
