-- When what a schedule among the settings starts is next due.

-- +goose Up

-- A row is what a scheduler has made of a setting: it holds only while that has the value in cron, and is made anew for
-- another one. That whoever writes settings need not know of it lets an older version go on.
-- It is searched over all tenants: the scheduler finds what is due.
create table setting_schedule (
  tenant_id uuid not null,
  key       text not null,
  cron      text not null,
  next_at   timestamptz not null,
  primary key (tenant_id, key),
  foreign key (tenant_id, key) references setting on delete cascade
);
create index setting_schedule_due on setting_schedule (next_at);
call app.protect('setting_schedule', true);
create index setting_scheduled on setting (key, tenant_id) where key = 'deduplication.cron_schedule';

-- +goose Down
drop index setting_scheduled;
drop table setting_schedule;
