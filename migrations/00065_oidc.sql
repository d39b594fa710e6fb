-- Sign-in with OpenID Connect: providers, what is about to sign in, who has, and groups that follow those of providers.

-- +goose Up
set local lock_timeout = '5s'; -- account is referred to, and it and access_group_member get a column

-- What the operator's program writes (operator oidc set).
create table oidc_provider (
  tenant_id         uuid not null references tenant on delete cascade,
  id                uuid not null,
  name              text not null check (name ~ '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$'),
  display_name      text not null check (length(display_name) between 1 and 100),
  issuer            text not null check (length(issuer) <= 500),
  client_id         text not null check (length(client_id) <= 500),
  client_secret     bytea, -- sealed with CREDENTIALS_KEY, which the database does not know; null: the provider knows none
  scopes            text[] not null check (cardinality(scopes) <= 20),
  admin_groups      text[] not null default '{}' check (cardinality(admin_groups) <= 100),
  maintainer_groups text[] not null default '{}' check (cardinality(maintainer_groups) <= 100),
  reader_groups     text[] not null default '{}' check (cardinality(reader_groups) <= 100),
  groups_claim      text not null check (length(groups_claim) <= 200), -- '': groups are not asked for
  username_claim    text not null check (length(username_claim) <= 200),
  email_claim       text not null check (length(email_claim) <= 200),
  create_users      boolean not null,
  default_role      text not null check (default_role in ('reader', 'maintainer', 'admin')),
  redirect_uris     text[] not null default '{}' check (cardinality(redirect_uris) <= 50), -- besides those of the own host
  enabled           boolean not null,
  created_at        timestamptz not null default now(),
  updated_at        timestamptz not null default now(),
  primary key (tenant_id, id)
);
comment on column oidc_provider.client_secret is 'secret';
create unique index oidc_provider_name on oidc_provider (tenant_id, name);
call app.protect('oidc_provider');
revoke insert, update, delete on oidc_provider from longbox_app, longbox_limited;

-- A sign-in that has begun: found by the state that the provider gives back, in the browser that has the cookie.
create table oidc_state (
  tenant_id    uuid not null,
  hash         bytea not null check (octet_length(hash) = 32),
  browser      bytea not null check (octet_length(browser) = 32), -- hash of the cookie, which nonce and PKCE verifier follow from
  provider_id  uuid not null,
  redirect_uri text check (length(redirect_uri) <= 2000), -- where the browser goes afterwards
  expires_at   timestamptz not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, provider_id) references oidc_provider on delete cascade
);
comment on column oidc_state.hash is 'secret';
comment on column oidc_state.browser is 'secret';
create index oidc_state_expires on oidc_state (expires_at); -- of all tenants: the scheduler deletes them
create index oidc_state_provider on oidc_state (tenant_id, provider_id);
call app.protect('oidc_state', true); -- the same

-- Who signs in as whom.
create table oidc_identity (
  tenant_id     uuid not null,
  provider_id   uuid not null,
  subject       text not null check (length(subject) between 1 and 255),
  account_id    uuid not null,
  created_at    timestamptz not null default now(),
  last_login_at timestamptz not null default now(),
  primary key (tenant_id, provider_id, subject),
  foreign key (tenant_id, provider_id) references oidc_provider on delete cascade,
  foreign key (tenant_id, account_id) references account on delete cascade
);
create unique index oidc_identity_account on oidc_identity (tenant_id, account_id, provider_id);
call app.protect('oidc_identity');

-- Who is in the provider's group joins the access group at the next sign-in, and who is not leaves it.
create table access_group_oidc_mapping (
  tenant_id       uuid not null,
  id              uuid not null,
  group_id        uuid not null,
  oidc_group_name text not null check (length(oidc_group_name) between 1 and 500),
  created_at      timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, group_id) references access_group on delete cascade
);
create unique index access_group_oidc_mapping_name on access_group_oidc_mapping (tenant_id, group_id, oidc_group_name);
create index access_group_oidc_mapping_group on access_group_oidc_mapping (tenant_id, oidc_group_name);
call app.protect('access_group_oidc_mapping');

alter table access_group_member add column source text not null default 'manual' check (source in ('manual', 'oidc')),
  add column provider_id uuid; -- with oidc: the provider that says so, though it may be gone

-- The user registered with this address, and nobody confirmed that it is theirs: whoever else signs in with it is not
-- taken for this user.
alter table account add column email_claimed boolean not null default false;

-- +goose Down
set local lock_timeout = '5s';
alter table account drop column email_claimed;
alter table access_group_member drop column source, drop column provider_id;
drop table access_group_oidc_mapping;
drop table oidc_identity;
drop table oidc_state;
drop table oidc_provider;
