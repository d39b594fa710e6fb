-- Books as KOReader names them when it synchronises progress: by a digest of parts of the file.

-- +goose Up
set local lock_timeout = '5s'; -- the foreign key locks the table of books
-- digest is KOReader's of the version of the file that the other columns tell, as page_index has them; spine has the
-- documents of an e-book in reading order.
create table koreader_digest (
  tenant_id     uuid not null,
  book_id       uuid not null,
  digest        text not null,
  spine         text[] not null default '{}',
  file_size     bigint not null,
  file_etag     text not null,
  file_modified timestamptz not null,
  primary key (tenant_id, book_id),
  foreign key (tenant_id, book_id) references book on delete cascade
);
create index koreader_digest_digest on koreader_digest (tenant_id, digest);
call app.protect('koreader_digest');
call app.limit_books('koreader_digest');

-- +goose Down
drop table koreader_digest;
