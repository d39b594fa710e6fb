-- Release tracking: which series are tracked, what else they are called, which sources plugins know, and what those
-- have announced.

-- +goose Up
set local lock_timeout = '5s'; -- the foreign keys lock series and plugin

create table series_tracking (
  tenant_id            uuid not null,
  series_id            uuid not null,
  tracked              boolean not null default false,
  track_chapters       boolean not null default true,
  track_volumes        boolean not null default true,
  latest_chapter       double precision, -- that is known of: moves forward with what is announced
  latest_volume        double precision,
  languages            text[], -- null: those of the setting
  volume_chapters      jsonb, -- which chapters a volume holds
  poll_interval        integer, -- seconds
  confidence_threshold double precision check (confidence_threshold between 0 and 1),
  created_at           timestamptz not null default now(),
  updated_at           timestamptz not null default now(),
  primary key (tenant_id, series_id),
  foreign key (tenant_id, series_id) references series on delete cascade
);
create index series_tracking_tracked on series_tracking (tenant_id, series_id) where tracked;
call app.protect('series_tracking');
call app.limit_series('series_tracking', 'series_id');

create table series_alias (
  tenant_id  uuid not null,
  id         uuid not null,
  series_id  uuid not null,
  alias      text not null check (length(alias) <= 1000),
  normalized text not null, -- in lower case, without punctuation
  source     text not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, series_id) references series on delete cascade
);
create unique index series_alias_normalized on series_alias (tenant_id, series_id, normalized);
call app.protect('series_alias');
call app.limit_series('series_alias', 'series_id');

create table release_source (
  tenant_id      uuid not null,
  id             uuid not null,
  plugin_id      uuid not null,
  name           text not null, -- what the plugin calls it
  display_name   text not null,
  kind           text not null,
  config         jsonb, -- is given to the plugin as it is
  enabled        boolean not null default true,
  cron_schedule  text, -- null: that of the setting
  etag           text, -- what the plugin wants to be told with the next poll
  last_polled_at timestamptz,
  last_error     text,
  last_error_at  timestamptz,
  last_summary   text,
  covered_at     timestamptz, -- when it was last polled without an error
  resume_after   uuid, -- the last series that fitted into the last poll, null where all did
  next_at        timestamptz,
  next_of        text, -- the schedule and time zone that next_at follows from
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, plugin_id) references plugin on delete cascade
);
create unique index release_source_name on release_source (tenant_id, plugin_id, name);
create index release_source_due on release_source (next_at) where enabled;
call app.protect('release_source', true); -- the scheduler looks for what is due of all tenants

create table release (
  tenant_id           uuid not null,
  id                  uuid not null,
  source_id           uuid not null,
  series_id           uuid not null,
  external_release_id text not null,
  info                text, -- the torrent's, in lower case
  volumes             jsonb,
  chapters            jsonb,
  language            text,
  format_hints        jsonb,
  group_or_uploader   text,
  payload_url         text not null,
  media_url           text,
  media_url_kind      text,
  confidence          double precision not null,
  metadata            jsonb,
  state               text not null check (state in ('announced', 'dismissed', 'marked_acquired', 'ignored', 'hidden')),
  observed_at         timestamptz not null,
  released_at         timestamptz,
  created_at          timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, source_id) references release_source on delete cascade,
  foreign key (tenant_id, series_id) references series on delete cascade
);
create unique index release_external on release (tenant_id, source_id, external_release_id);
create unique index release_info on release (tenant_id, series_id, info) where info is not null;
create index release_state on release (tenant_id, state, observed_at desc, id);
create index release_series on release (tenant_id, series_id, observed_at desc, id);
create index release_source_created on release (tenant_id, source_id, created_at, id);
call app.protect('release');
call app.limit_series('release', 'series_id');

-- announces tells whether a plugin announces releases, as it has said itself.
create function app.announces(p plugin) returns boolean language sql stable parallel safe as $$
  select coalesce(p.manifest #> '{capabilities,releaseSource}', 'null') not in ('null', 'false')
$$;

-- hand_releases gives what belongs to the tracking of a series to another, which goes on in its place.
-- +goose StatementBegin
create or replace function app.hand_releases(p_from uuid, p_to uuid) returns void language sql as $$
  insert into public.series_tracking (tenant_id, series_id, tracked, track_chapters, track_volumes, latest_chapter, latest_volume, languages,
      volume_chapters, poll_interval, confidence_threshold, created_at, updated_at)
    select t.tenant_id, p_to, t.tracked, t.track_chapters, t.track_volumes, t.latest_chapter, t.latest_volume, t.languages,
      t.volume_chapters, t.poll_interval, t.confidence_threshold, t.created_at, t.updated_at
    from public.series_tracking t where t.tenant_id = app.tenant() and t.series_id = p_from on conflict do nothing;
  insert into public.series_alias (tenant_id, id, series_id, alias, normalized, source, created_at)
    select a.tenant_id, gen_random_uuid(), p_to, a.alias, a.normalized, a.source, a.created_at
    from public.series_alias a where a.tenant_id = app.tenant() and a.series_id = p_from on conflict do nothing;
  update public.release r set series_id = p_to where r.tenant_id = app.tenant() and r.series_id = p_from and (r.info is null or not exists (
    select from public.release o where o.tenant_id = r.tenant_id and o.series_id = p_to and o.info = r.info));
$$;
-- +goose StatementEnd

-- As 00050 has it, with the call of hand_releases.
-- +goose StatementBegin
create or replace function app.replace_series(p_scan uuid, p_old uuid, p_new uuid, p_since timestamptz) returns boolean language plpgsql as $$
declare
  v_tenant constant uuid := app.tenant();
  v_new public.series;
begin
  select n.* into v_new from public.series n join public.series o on o.tenant_id = n.tenant_id and o.id = p_old
    where n.tenant_id = v_tenant and n.id = p_new and n.id <> o.id and n.library_id = o.library_id and o.book_count = 0
      and n.created_at >= p_since and n.locks = '{}' and o.created_at <= n.created_at;
  if not found then
    return false;
  end if;
  update public.book set series_id = p_old where tenant_id = v_tenant and series_id = p_new;
  perform app.hand_series(p_new, p_old);
  perform app.hand_releases(p_new, p_old);
  delete from public.series where tenant_id = v_tenant and id = p_new;
  update public.series s set path = v_new.path, name = v_new.name, updated_at = now(),
      title = case when 'title' = any(s.locks) then s.title else v_new.title end,
      search_title = case when 'title' = any(s.locks) then s.search_title else v_new.search_title end,
      title_sort = case when s.locks && '{title,titleSort}' then s.title_sort else v_new.title_sort end
    where s.tenant_id = v_tenant and s.id = p_old;
  update public.scan set series_created = greatest(series_created - 1, 0) where tenant_id = v_tenant and id = p_scan;
  return true;
end $$;
-- +goose StatementEnd

-- +goose Down
-- The function stays, and hands over nothing: the tables go next.
create or replace function app.hand_releases(p_from uuid, p_to uuid) returns void language sql as '';
drop function app.announces(plugin);
drop table release, release_source, series_alias, series_tracking;
