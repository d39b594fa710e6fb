-- Uploads in several parts that were begun and neither completed nor aborted.

-- +goose Up
create table upload (
  tenant_id  uuid not null,
  id         uuid not null,
  library_id uuid not null,
  account_id uuid,
  key        text not null collate "C", -- below the library's prefix
  size       bigint not null,
  part_size  bigint not null check (part_size > 0),
  overwrite  boolean not null,
  store_id   text not null,             -- the store's name for the upload
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (tenant_id, id),
  foreign key (tenant_id, library_id) references library on delete cascade
);
create index upload_library on upload (tenant_id, library_id);
create index upload_expiry on upload (tenant_id, expires_at);
call app.protect('upload');

-- +goose Down
drop table upload;
