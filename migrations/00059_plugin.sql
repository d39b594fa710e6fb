-- Plugins: programs of others that know about books, how their requests fared, and where covers come from.

-- +goose Up
set local lock_timeout = '5s'; -- series_cover gets a column
create table plugin (
  tenant_id                  uuid not null references tenant on delete cascade,
  id                         uuid not null,
  name                       text not null,
  display_name               text not null,
  description                text,
  plugin_type                text not null check (plugin_type in ('system', 'user')),
  command                    text not null,
  args                       text[] not null default '{}',
  working_directory          text,
  env                        jsonb not null default '{}',
  config                     jsonb not null default '{}',
  credential_delivery        text not null check (credential_delivery in ('env', 'init_message', 'both')),
  credentials                bytea, -- sealed with CREDENTIALS_KEY, which the database does not know
  enabled                    boolean not null,
  disabled_reason            text,
  health_status              text not null default 'unknown' check (health_status in ('unknown', 'healthy', 'degraded', 'unhealthy', 'disabled')),
  failure_count              integer not null default 0,
  last_failure_at            timestamptz,
  last_success_at            timestamptz,
  library_ids                uuid[] not null default '{}', -- of libraries that are gone, too: none left is not all
  scopes                     text[] not null default '{}',
  permissions                text[] not null default '{}',
  metadata_targets           text[],
  use_existing_external_id   boolean not null,
  auto_match_conditions      jsonb,
  search_query_template      text,
  search_preprocessing_rules jsonb,
  search_results_limit       integer,
  rate_limit                 integer, -- requests a minute
  request_timeout            integer, -- seconds
  log_level                  text,
  sync_cron_schedule         text,
  manifest                   jsonb,
  counted_from               timestamptz not null default now(), -- failures before it do not disable
  tokens                     double precision not null default 0, -- requests that rate_limit left at tokens_at
  tokens_at                  timestamptz, -- null: all of them
  created_at                 timestamptz not null default now(),
  updated_at                 timestamptz not null default now(),
  primary key (tenant_id, id)
);
comment on column plugin.credentials is 'secret';
create unique index plugin_name on plugin (tenant_id, name);
call app.protect('plugin');

create table plugin_failure (
  tenant_id       uuid not null,
  id              uuid not null,
  plugin_id       uuid not null,
  occurred_at     timestamptz not null default now(),
  code            text not null,
  message         text not null,
  method          text,
  request_summary text,
  primary key (tenant_id, id),
  foreign key (tenant_id, plugin_id) references plugin on delete cascade
);
create index plugin_failure_plugin on plugin_failure (tenant_id, plugin_id, occurred_at desc);
call app.protect('plugin_failure');

-- How the requests of each method fared since the plugin was added.
create table plugin_method (
  tenant_id uuid not null,
  plugin_id uuid not null,
  method    text not null,
  requests  bigint not null,
  failed    bigint not null,
  refused   bigint not null, -- by a rate limit: the plugin's (also failed), or its own here (no request)
  total_ms  double precision not null,
  primary key (tenant_id, plugin_id, method),
  foreign key (tenant_id, plugin_id) references plugin on delete cascade
);
call app.protect('plugin_method');

-- asks_series tells whether a plugin gives metadata of series, as far as is known.
create function app.asks_series(p plugin) returns boolean language sql stable parallel safe as $$
  select (p.metadata_targets is null or 'series' = any(p.metadata_targets))
    and (p.manifest is null or coalesce(p.manifest -> 'capabilities' -> 'metadataProvider' ? 'series', false))
$$;

-- custom for a picture that people have uploaded, plugin: and a name for one that a plugin has named.
alter table series_cover add column source text not null default 'custom';

-- check_locks ends what was prepared when the series, or with p_of the book, had other locks than it has now.
-- +goose StatementBegin
create function app.check_locks(p_of text, p_id uuid, p_locks text[]) returns void language plpgsql as $$
declare
  v_locks text[];
begin
  if p_of = 'series' then
    select s.locks into v_locks from public.series s where s.tenant_id = app.tenant() and s.id = p_id for no key update;
    if not found then
      raise exception 'It was removed meanwhile' using errcode = 'LB409';
    end if;
  else
    perform from public.book b where b.tenant_id = app.tenant() and b.id = p_id and b.deleted_at is null for no key update;
    if not found then
      raise exception 'It was removed meanwhile' using errcode = 'LB409';
    end if;
    select m.locks into v_locks from public.book_metadata m where m.tenant_id = app.tenant() and m.book_id = p_id;
  end if;
  if not (coalesce(v_locks, '{}') <@ p_locks) then
    raise exception 'Somebody has locked fields meanwhile; try again' using errcode = 'LB409';
  end if;
end $$;
-- +goose StatementEnd

-- +goose Down
set local lock_timeout = '5s';
drop function app.check_locks(text, uuid, text[]);
alter table series_cover drop column source;
drop function app.asks_series(plugin);
drop table plugin_method;
drop table plugin_failure;
drop table plugin;
