-- Pictures that people have uploaded as covers of series: cover_source is custom: and the id of the one that is shown.
-- fingerprint is the SHA-256 of the image, in hexadecimal digits.

-- +goose Up
set local lock_timeout = '5s'; -- the foreign keys lock series

create table series_cover (
  tenant_id   uuid not null,
  id          uuid not null,
  series_id   uuid not null,
  fingerprint text not null,
  type        text not null,
  image       bytea not null,
  size        bigint not null,
  width       integer,
  height      integer,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (tenant_id, id),
  foreign key (tenant_id, series_id) references series on delete cascade
);
create unique index series_cover_image on series_cover (tenant_id, series_id, fingerprint);
alter table series_cover alter image set storage external; -- it is compressed already
call app.protect('series_cover');

-- +goose Down
drop table series_cover;
