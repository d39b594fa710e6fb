-- Tenancy: the schema `app` with the functions every request starts with, and the tables of tenants,
-- users, keys, settings and preferences. README.md in this folder has the rules.

-- +goose Up
create schema if not exists app;
create collation if not exists natural_order (provider = icu, locale = 'und-u-kn-true');

-- +goose StatementBegin
do $$
begin
  if not exists (select from pg_roles where rolname = 'longbox_app') then
    create role longbox_app nologin;
  end if;
  if not exists (select from pg_roles where rolname = 'longbox_system') then
    create role longbox_system nologin;
  end if;
end $$;
-- +goose StatementEnd

grant usage on schema app, public to longbox_app, longbox_system;

-- The tenant of the current transaction; null when none was entered (the setting reads '' after one).
create function app.tenant() returns uuid language sql stable parallel safe
  as $$ select nullif(current_setting('app.tenant', true), '')::uuid $$;

-- The user of the current transaction; null outside a user's request.
create function app.account() returns uuid language sql stable parallel safe
  as $$ select nullif(current_setting('app.account', true), '')::uuid $$;

-- protect puts a table under row-level security: longbox_app sees the rows of the entered tenant only,
-- longbox_system the same, unless system_wide lets it see all (claiming tasks, finding due schedules).
-- +goose StatementBegin
create procedure app.protect(tbl regclass, system_wide boolean default false, tenant_column text default 'tenant_id')
language plpgsql as $$
begin
  execute format('alter table %s enable row level security', tbl);
  execute format('create policy tenant on %s to longbox_app using (%I = (select app.tenant())) with check (%I = (select app.tenant()))', tbl, tenant_column, tenant_column);
  if system_wide then
    execute format('create policy system on %s to longbox_system using (true) with check (true)', tbl);
  else
    execute format('create policy system on %s to longbox_system using (%I = (select app.tenant())) with check (%I = (select app.tenant()))', tbl, tenant_column, tenant_column);
  end if;
  execute format('grant select, insert, update, delete on %s to longbox_app, longbox_system', tbl);
end $$;
-- +goose StatementEnd

create table tenant (
  id          uuid primary key,
  name        text not null unique check (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  hosts       text[] not null default '{}',
  status      text not null default 'active' check (status in ('active', 'suspended', 'deleting')),
  secret      bytea not null check (octet_length(secret) = 32),
  -- Quotas; null is no limit.
  max_books           bigint check (max_books >= 0),
  max_rendition_bytes bigint check (max_rendition_bytes >= 0),
  max_scans           integer check (max_scans >= 0),
  max_requests        integer check (max_requests > 0), -- a second, of all its users together
  status_at   timestamptz not null default now(),
  secret_at   timestamptz not null default now(), -- when the secret was made
  deletion    jsonb, -- what was deleted so far, while status is deleting
  created_at  timestamptz not null default now()
);
create index tenant_hosts on tenant using gin (hosts);
-- What an export leaves out unless it is asked for: a test compares these marks with the names of columns.
comment on column tenant.secret is 'secret';
call app.protect('tenant', true, 'id');
revoke insert, update, delete on tenant from longbox_app;

-- No host leads to two tenants: neither another's host nor another's name, which is a host, too.
-- +goose StatementBegin
create function app.check_hosts() returns trigger language plpgsql as $$
declare
  v_other text;
  v_hosts text[];
begin
  perform pg_advisory_xact_lock(7267);
  select t.name, array(select unnest(t.hosts || t.name) intersect select unnest(new.hosts || new.name)) into v_other, v_hosts
    from public.tenant t where t.id <> new.id and (t.hosts && (new.hosts || new.name) or t.name = any(new.hosts)) limit 1;
  if found then
    raise exception 'hosts: % belongs to the tenant % already', v_hosts[1], v_other using errcode = 'LB409';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger tenant_hosts before insert or update of name, hosts on tenant for each row execute function app.check_hosts();

create table account (
  tenant_id      uuid not null references tenant on delete cascade,
  id             uuid not null,
  username       text not null,
  email          text not null,
  password_hash  text not null,
  role           text not null check (role in ('reader', 'maintainer', 'admin')),
  permissions    text[] not null default '{}',
  is_active      boolean not null default true,
  email_verified boolean not null default true,
  generation     integer not null default 1,
  last_login_at  timestamptz,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  primary key (tenant_id, id)
);
comment on column account.password_hash is 'secret';
create unique index account_username on account (tenant_id, lower(username));
create unique index account_email on account (tenant_id, lower(email));
call app.protect('account');

create table refresh_token (
  tenant_id  uuid not null,
  id         uuid not null,
  account_id uuid not null,
  family_id  uuid not null,
  hash       bytea not null,
  expires_at timestamptz not null,
  used_at    timestamptz,
  user_agent text not null default '',
  ip         text not null default '',
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, account_id) references account on delete cascade
);
comment on column refresh_token.hash is 'secret';
create unique index refresh_token_hash on refresh_token (tenant_id, hash);
create index refresh_token_family on refresh_token (tenant_id, family_id);
create index refresh_token_account on refresh_token (tenant_id, account_id);
create index refresh_token_expiry on refresh_token (tenant_id, expires_at);
call app.protect('refresh_token', true);

create table verification_token (
  tenant_id  uuid not null,
  account_id uuid not null,
  hash       bytea not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, account_id),
  foreign key (tenant_id, account_id) references account on delete cascade
);
comment on column verification_token.hash is 'secret';
create unique index verification_token_hash on verification_token (tenant_id, hash);
call app.protect('verification_token', true);

create table api_key (
  tenant_id    uuid not null,
  id           uuid not null,
  account_id   uuid not null,
  name         text not null,
  prefix       text not null,
  hash         bytea not null check (octet_length(hash) = 32),
  permissions  text[] not null,
  is_active    boolean not null default true,
  expires_at   timestamptz,
  last_used_at timestamptz,
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, account_id) references account on delete cascade
);
comment on column api_key.hash is 'secret';
create unique index api_key_prefix on api_key (tenant_id, prefix);
create index api_key_account on api_key (tenant_id, account_id, created_at);
call app.protect('api_key');

create table setting (
  tenant_id  uuid not null references tenant on delete cascade,
  key        text not null,
  value      text not null,
  version    integer not null default 1,
  updated_at timestamptz not null default now(),
  updated_by uuid,
  primary key (tenant_id, key)
);
call app.protect('setting', true);

create table setting_history (
  tenant_id     uuid not null references tenant on delete cascade,
  id            uuid not null,
  key           text not null,
  old_value     text not null,
  new_value     text not null,
  changed_by    uuid,
  changed_at    timestamptz not null default now(),
  change_reason text,
  ip_address    text,
  primary key (tenant_id, id)
);
create index setting_history_key on setting_history (tenant_id, key, changed_at desc);
call app.protect('setting_history');

create table preference (
  tenant_id  uuid not null,
  account_id uuid not null,
  key        text not null,
  value      jsonb not null,
  updated_at timestamptz not null default now(),
  primary key (tenant_id, account_id, key),
  foreign key (tenant_id, account_id) references account on delete cascade
);
call app.protect('preference');

-- The permissions that a role brings; shared/platform/auth holds the same list and a test compares them. One
-- expression, so that the planner inlines it: every request asks.
create function app.role_permissions(role text) returns text[] language sql immutable parallel safe as $$
  select case role
    when 'admin' then array['LibrariesRead','SeriesRead','BooksRead','PagesRead','ProgressRead','ProgressWrite','CollectionsRead',
      'ReadListsRead','ApiKeysRead','ApiKeysWrite','ApiKeysDelete','SystemHealth',
      'LibrariesWrite','SeriesWrite','SeriesDelete','BooksWrite','BooksDelete','CollectionsWrite',
      'CollectionsDelete','ReadListsWrite','ReadListsDelete','TasksRead','TasksWrite',
      'LibrariesDelete','UsersRead','UsersWrite','UsersDelete','PluginsManage','SystemAdmin']
    when 'maintainer' then array['LibrariesRead','SeriesRead','BooksRead','PagesRead','ProgressRead','ProgressWrite','CollectionsRead',
      'ReadListsRead','ApiKeysRead','ApiKeysWrite','ApiKeysDelete','SystemHealth',
      'LibrariesWrite','SeriesWrite','SeriesDelete','BooksWrite','BooksDelete','CollectionsWrite',
      'CollectionsDelete','ReadListsWrite','ReadListsDelete','TasksRead','TasksWrite']
    else array['LibrariesRead','SeriesRead','BooksRead','PagesRead','ProgressRead','ProgressWrite','CollectionsRead',
      'ReadListsRead','ApiKeysRead','ApiKeysWrite','ApiKeysDelete','SystemHealth']
  end
$$;

-- use_tenant binds the transaction to a tenant, in nobody's name: sign-in, set-up, workers.
-- +goose StatementBegin
create function app.use_tenant(p_tenant uuid) returns void language plpgsql as $$
begin
  perform set_config('app.tenant', p_tenant::text, true), set_config('app.account', '', true);
end $$;
-- +goose StatementEnd

-- enter binds the transaction to a tenant and one of its users, and raises LB401 or LB403 (so that nothing of
-- the batch takes effect) unless the user, and the API key where one was sent, may do what p_permission names.
-- A token carries the generation of its account: a changed password or a forced sign-out ends every token.
-- From here on no statement of the batch may take longer than app.request_timeout, a parameter of the database
-- (`alter database longbox set app.request_timeout = '5s'`; 2 s where it is not set): what one user asks for must
-- not take the database from the others.
-- +goose StatementBegin
create function app.enter(p_tenant uuid, p_account uuid, p_generation integer, p_key bytea, p_permission text,
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

-- tenant_by_host finds the tenant of a host name before any tenant is entered; it shows nothing but that row.
create function app.tenant_by_host(p_host text)
  returns table (id uuid, name text, status text, secret bytea, max_rendition_bytes bigint, max_requests integer)
  language sql stable security definer set search_path = pg_catalog, public as $$
  select t.id, t.name, t.status, t.secret, t.max_rendition_bytes, t.max_requests from public.tenant t
  where t.hosts @> array[p_host] or t.name = p_host limit 1 $$;
revoke execute on function app.tenant_by_host(text) from public;
grant execute on function app.tenant_by_host(text) to longbox_app, longbox_system;

-- +goose Down
drop schema app cascade;
drop table preference, setting_history, setting, api_key, verification_token, refresh_token, account, tenant;
drop collation natural_order;
