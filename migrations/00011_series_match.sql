-- What the members of groups of likely the same series are found by. An index that was interrupted while it was made is
-- there, but not valid: it is made anew.

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists series_search_title;
create index concurrently series_search_title on series (tenant_id, library_id, search_title);
drop index if exists external_id_match;
create index concurrently external_id_match on external_id (tenant_id, source, external_id) where series_id is not null;

-- +goose Down
drop index series_search_title, external_id_match;
