-- What each user thinks of series.

-- +goose Up
set local lock_timeout = '5s'; -- the foreign keys lock series and account

create table series_rating (
  tenant_id  uuid not null,
  account_id uuid not null,
  series_id  uuid not null,
  id         uuid not null,
  rating     integer not null check (rating between 1 and 100),
  notes      text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, account_id, series_id),
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, series_id) references series on delete cascade
);
create index series_rating_series on series_rating (tenant_id, series_id);
create index series_rating_updated on series_rating (tenant_id, account_id, updated_at desc, id);
call app.protect('series_rating');

-- +goose Down
drop table series_rating;
