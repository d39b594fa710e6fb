-- When covers that nothing shows any more are next looked for.

-- +goose Up

-- due_at is when the tenant's covers are next gone through, by whichever scheduler moves it first; place is the key behind which
-- that goes on, '' for the beginning. It is searched over all tenants: the scheduler finds what is due.
create table cover_sweep (
  tenant_id uuid not null references tenant on delete cascade,
  due_at    timestamptz not null,
  place     text not null default '',
  primary key (tenant_id)
);
call app.protect('cover_sweep', true);

-- +goose Down
drop table cover_sweep;
