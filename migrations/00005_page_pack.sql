-- Page packs: the pages of a book that its file gives only at a price.

-- +goose Up

-- A pack is an uncompressed archive in the media bucket with the pages of a book whose file must be decompressed from
-- its beginning (solid RAR, 7z) or drawn (PDF). Element n of the arrays belongs to page n; an offset of -1 says that
-- the page is read from the book's file. The row is of the content with this fingerprint: it serves no other, and
-- outlives its book until the scheduler, which searches over all tenants, has removed the object.
create table page_pack (
  tenant_id   uuid not null references tenant on delete cascade,
  book_id     uuid not null,
  fingerprint text not null,
  key         text not null,
  size        bigint not null,
  etag        text not null,
  offsets     bigint[] not null,
  sizes       bigint[] not null,
  crcs        bigint[] not null,
  created_at  timestamptz not null default now(),
  primary key (tenant_id, book_id)
);
create index page_pack_created on page_pack (created_at);
call app.protect('page_pack', true);

-- +goose Down
drop table page_pack;
