-- The scheduler keeps the scans that have not seen all files, of all tenants.

-- +goose Up
set local lock_timeout = '5s';
alter policy system on scan using (true) with check (true);

-- +goose Down
set local lock_timeout = '5s';
alter policy system on scan using (tenant_id = (select app.tenant())) with check (tenant_id = (select app.tenant()));
