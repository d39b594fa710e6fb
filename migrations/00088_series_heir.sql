-- Who locks the libraries of heirs looks for series that have one, which are few.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists series_heir;
create index concurrently series_heir on series (tenant_id, library_id) where heir is not null;

-- +goose Down
drop index concurrently if exists series_heir;
