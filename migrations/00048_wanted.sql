-- What each user wants to read: a queue of series and books.

-- +goose Up
create table wanted (
  tenant_id  uuid not null,
  account_id uuid not null,
  id         uuid not null,
  series_id  uuid,
  book_id    uuid,
  place      bigint not null, -- in the user's own order
  added_at   timestamptz not null default now(),
  primary key (tenant_id, id),
  check (num_nonnulls(series_id, book_id) = 1),
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, series_id) references series on delete cascade,
  foreign key (tenant_id, book_id) references book on delete cascade
);
create unique index wanted_series on wanted (tenant_id, series_id, account_id) where series_id is not null;
create unique index wanted_book on wanted (tenant_id, book_id, account_id) where book_id is not null;
create index wanted_place on wanted (tenant_id, account_id, place, id);
create index wanted_added on wanted (tenant_id, account_id, added_at, id);
call app.protect('wanted');

-- +goose Down
drop table wanted;
