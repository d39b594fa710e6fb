-- +goose NO TRANSACTION
-- What a service calls a series finds the series.

-- +goose Up
drop index concurrently if exists external_id_find;
create index concurrently external_id_find on external_id (tenant_id, source, external_id) where series_id is not null;

-- +goose Down
drop index concurrently external_id_find;
