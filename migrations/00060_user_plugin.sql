-- Plugins that users enable for themselves: what is theirs of each, what the plugin keeps for them, what it recommends,
-- how they sign in to its service, and when plugins synchronise.

-- +goose Up
create table user_plugin (
  tenant_id               uuid not null,
  id                      uuid not null,
  account_id              uuid not null,
  plugin_id               uuid not null,
  enabled                 boolean not null default true,
  config                  jsonb not null default '{}',
  credentials             bytea, -- sealed with CREDENTIALS_KEY, which the database does not know
  external_username       text,
  external_avatar_url     text,
  health_status           text not null default 'unknown' check (health_status in ('unknown', 'healthy', 'unhealthy')),
  failure_count           integer not null default 0,
  last_failure_at         timestamptz,
  last_success_at         timestamptz,
  last_sync_at            timestamptz,
  last_sync_result        jsonb,
  sync_task_id            uuid, -- the last task of each kind, which may be gone
  recommendations_task_id uuid,
  recommendations         jsonb, -- null: never asked for
  recommended_at          timestamptz,
  recommended_from_cache  boolean not null default false,
  dismissed               text[] not null default '{}', -- what the user wants to see no more, the last of them
  held_by                 uuid, -- the task that asks the plugin: one at a time, so that none renews a token or keeps a value over another
  held_until              timestamptz,
  created_at              timestamptz not null default now(),
  updated_at              timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, plugin_id) references plugin on delete cascade
);
comment on column user_plugin.credentials is 'secret';
create unique index user_plugin_account on user_plugin (tenant_id, account_id, plugin_id);
create index user_plugin_plugin on user_plugin (tenant_id, plugin_id);
call app.protect('user_plugin');

create table user_plugin_data (
  tenant_id      uuid not null,
  user_plugin_id uuid not null,
  key            text not null,
  data           text not null, -- JSON as the plugin wrote it, which jsonb would not take in every case
  expires_at     timestamptz,
  updated_at     timestamptz not null,
  primary key (tenant_id, user_plugin_id, key),
  foreign key (tenant_id, user_plugin_id) references user_plugin on delete cascade
);
call app.protect('user_plugin_data');

create table user_plugin_sign_in (
  tenant_id      uuid not null,
  state          bytea not null, -- the digest of what comes back
  user_plugin_id uuid not null,
  verifier       bytea not null, -- sealed
  redirect_uri   text not null,
  expires_at     timestamptz not null,
  primary key (tenant_id, state),
  foreign key (tenant_id, user_plugin_id) references user_plugin on delete cascade
);
comment on column user_plugin_sign_in.state is 'secret';
comment on column user_plugin_sign_in.verifier is 'secret';
create index user_plugin_sign_in_user on user_plugin_sign_in (tenant_id, user_plugin_id);
call app.protect('user_plugin_sign_in');

create table plugin_schedule (
  tenant_id uuid not null,
  plugin_id uuid not null,
  cron      text not null,
  next_at   timestamptz, -- null: no scheduler has met it yet
  primary key (tenant_id, plugin_id),
  foreign key (tenant_id, plugin_id) references plugin on delete cascade
);
create index plugin_schedule_due on plugin_schedule (next_at);
call app.protect('plugin_schedule', true); -- what is due is searched over all tenants

-- +goose Down
drop table plugin_schedule;
drop table user_plugin_sign_in;
drop table user_plugin_data;
drop table user_plugin;
