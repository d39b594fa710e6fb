-- What readers did in a book, one row for each sitting: progress is made of them, so that devices that were offline may tell later.

-- +goose Up

set local lock_timeout = '5s'; -- the foreign keys lock account and book

-- A pass through a book ends when somebody marks it unread (kind reset, which opens the next one): what is read after that counts on its
-- own. implied are rows made of a plain write of progress, which says no more than a position. recorded_at is when it was told.
create table reading_session (
  tenant_id   uuid not null,
  account_id  uuid not null,
  id          uuid not null,
  book_id     uuid not null,
  pass        integer not null check (pass > 0),
  kind        text not null check (kind in ('progress', 'completed', 'reset')),
  device_id   text not null,
  device_name text,
  started_at  timestamptz not null,
  ended_at    timestamptz not null check (ended_at >= started_at),
  page        integer check (page >= 0),
  percentage  double precision check (percentage between 0 and 1),
  active_ms   bigint check (active_ms >= 0),
  pages_read  integer check (pages_read >= 0),
  locator     text,
  implied     boolean not null default false,
  recorded_at timestamptz not null default now(),
  primary key (tenant_id, account_id, id),
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, book_id) references book on delete cascade
);
create index reading_session_book on reading_session (tenant_id, account_id, book_id, pass desc, ended_at desc);
create index reading_session_of_book on reading_session (tenant_id, book_id);
call app.protect('reading_session');

-- The pass that was completed; null where that was before this column.
alter table completion add column pass integer;

-- The sessions of a book that was made of a file count for the book that takes its place, after those that it had.
-- +goose StatementBegin
do $$
declare
  v_now constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_then constant text := replace(v_now, '  update public.completion c set book_id = u.who from', '  update public.reading_session s set book_id = u.who, pass = s.pass + coalesce((select max(h.pass) - 1
      from public.reading_session h where h.tenant_id = v_tenant and h.account_id = s.account_id and h.book_id = u.who), 0)
    from unnest(v_who, v_where) as u(who, place)
    where s.tenant_id = v_tenant and s.book_id = u.place and u.place = any(v_fresh);
  update public.completion c set book_id = u.who from');
begin
  if v_then = v_now then
    raise 'app.follow_content is not the one of 00013';
  end if;
  execute v_then;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
do $$
declare
  v_now constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_from constant integer := position('  update public.reading_session s' in v_now);
begin
  execute overlay(v_now placing '' from v_from for position('  update public.completion c set book_id' in v_now) - v_from);
end $$;
-- +goose StatementEnd
alter table completion drop column pass;
drop table reading_session;
