-- Collections of series, and read lists: collections of books. The members of an automatic one are those that meet its
-- condition.

-- +goose Up
create table collection (
  tenant_id  uuid not null references tenant on delete cascade,
  id         uuid not null,
  kind       text not null check (kind in ('series', 'books')),
  name       text not null,
  summary    text,
  ordered    boolean not null default false,
  condition  jsonb check (condition is null or kind = 'series'), -- of an automatic one
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index collection_name on collection (tenant_id, kind, lower(name));
call app.protect('collection');

create table collection_member (
  tenant_id     uuid not null,
  id            uuid not null,
  collection_id uuid not null,
  series_id     uuid,
  book_id       uuid,
  place         bigint not null,
  added_at      timestamptz not null default now(),
  primary key (tenant_id, id),
  check (num_nonnulls(series_id, book_id) = 1),
  foreign key (tenant_id, collection_id) references collection on delete cascade,
  foreign key (tenant_id, series_id) references series on delete cascade,
  foreign key (tenant_id, book_id) references book on delete cascade
);
create unique index collection_member_series on collection_member (tenant_id, series_id, collection_id) where series_id is not null;
create unique index collection_member_book on collection_member (tenant_id, book_id, collection_id) where book_id is not null;
create index collection_member_place on collection_member (tenant_id, collection_id, place, id);
call app.protect('collection_member');

-- +goose Down
drop table collection_member, collection;
