-- Access tokens of identity providers as credentials, what it means that a provider is silent about groups, and
-- synchronisation by schedule that starts some users' tasks at a time.

-- +goose Up
set local lock_timeout = '5s'; -- every sign-in reads oidc_provider

alter table oidc_provider
  add column bearer_audience text not null default '' check (length(bearer_audience) <= 500), -- '': access tokens are not taken
  add column missing_groups text not null default 'none' check (missing_groups in ('keep', 'none'));

-- The public keys of a provider, as the api last read them: who checks tokens elsewhere cannot reach the provider.
create table oidc_keys (
  tenant_id   uuid not null,
  provider_id uuid not null,
  issuer      text not null check (length(issuer) <= 500), -- whose they are: the provider's may have changed since
  keys        jsonb not null check (length(keys::text) <= 300000), -- a JSON Web Key Set
  fetched_at  timestamptz not null default now(), -- 1970: never
  asked_at    timestamptz not null default now(), -- when a program last began to ask for them: the others wait for it
  primary key (tenant_id, provider_id),
  foreign key (tenant_id, provider_id) references oidc_provider on delete cascade
);
call app.protect('oidc_keys');
revoke delete on oidc_keys from longbox_app, longbox_limited; -- they go with the provider

-- The last user whose task was started of a schedule that is due; null: nobody's was.
alter table plugin_schedule add column after_id uuid;

-- +goose Down
set local lock_timeout = '5s';
alter table plugin_schedule drop column after_id;
drop table oidc_keys;
alter table oidc_provider drop column bearer_audience, drop column missing_groups;
