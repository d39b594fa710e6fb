-- Series that are likely the same.

-- +goose Up

-- A group of series: of one library, with the same normalised title in value, or of any, with the same id in value at the
-- same source. Which they are now, the series themselves say. dismissed are those of the group, by id, when somebody
-- dismissed it: it is shown again when others join them.
create table series_duplicate (
  tenant_id  uuid not null references tenant on delete cascade,
  id         uuid not null,
  library_id uuid,
  source     text,
  value      text not null,
  dismissed  uuid[],
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, library_id) references library on delete cascade,
  check (num_nonnulls(library_id, source) = 1)
);
create unique index series_duplicate_title on series_duplicate (tenant_id, library_id, value) where library_id is not null;
create unique index series_duplicate_external on series_duplicate (tenant_id, source, value) where source is not null;
call app.protect('series_duplicate');

-- +goose Down
drop table series_duplicate;
