-- What is left in the stores is found until it is gone.

-- +goose Up
set local lock_timeout = '5s';

-- The scheduler finds the expired uploads of all tenants, and aborts those that were not completed.
alter policy system on upload using (true) with check (true);

-- cleaned is the count of deletions whose files a clean-up has deleted. If asked is further, its task may have failed:
-- another one is added some minutes after asked_at.
alter table export_cleanup add column cleaned bigint not null default 0, add column asked_at timestamptz not null default '-infinity';

-- +goose Down
set local lock_timeout = '5s';
alter table export_cleanup drop column cleaned, drop column asked_at;
alter policy system on upload using (tenant_id = (select app.tenant())) with check (tenant_id = (select app.tenant()));
