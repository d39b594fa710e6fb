-- Series that have an heir, and whose heir is one that goes or is replaced, are found by it: they are few.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists series_heir;
create index concurrently series_heir on series (tenant_id, heir, library_id) where heir is not null;

-- +goose Down
drop index concurrently if exists series_heir;
