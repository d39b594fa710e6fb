-- Books with the same content.

-- +goose Up

-- A group of books with the same fingerprint; which they are now, the books themselves say. dismissed are those of the
-- group, by id, when somebody dismissed it: it is shown again when they are others.
create table duplicate (
  tenant_id   uuid not null references tenant on delete cascade,
  id          uuid not null,
  fingerprint text not null,
  dismissed   uuid[],
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  primary key (tenant_id, id)
);
create unique index duplicate_fingerprint on duplicate (tenant_id, fingerprint);
call app.protect('duplicate');

-- +goose Down
drop table duplicate;
