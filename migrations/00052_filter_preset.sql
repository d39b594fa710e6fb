-- Filters that users keep for lists and for searches, in all libraries or in one.

-- +goose Up
set local lock_timeout = '5s'; -- the foreign keys lock account and library

create table filter_preset (
  tenant_id  uuid not null,
  account_id uuid not null,
  id         uuid not null,
  library_id uuid,
  name       text not null,
  scope      text not null check (scope in ('list', 'search')),
  target     text not null check (target in ('series', 'books')),
  condition  jsonb not null,
  query      text,
  sort       text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, library_id) references library on delete cascade
);
create unique index filter_preset_name on filter_preset (tenant_id, account_id, scope, target, library_id, lower(name)) where library_id is not null;
create unique index filter_preset_global_name on filter_preset (tenant_id, account_id, scope, target, lower(name)) where library_id is null;
create index filter_preset_library on filter_preset (tenant_id, library_id) where library_id is not null;
create index filter_preset_account on filter_preset (tenant_id, account_id);
call app.protect('filter_preset');

-- +goose Down
drop table filter_preset;
