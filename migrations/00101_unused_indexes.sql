-- No statement reads by these indexes, so they only cost writes. The order by release is that of book.release_day
-- (00079); a schedule among the settings is found by its key. Only the scheduler deletes refresh tokens by expiry, over
-- all tenants, for which an index that begins with the tenant does not help.

-- +goose NO TRANSACTION
-- +goose Up
drop index concurrently if exists book_metadata_release;
drop index concurrently if exists setting_schedule_due;
drop index concurrently if exists refresh_token_expiry;
drop index concurrently if exists refresh_token_expires;
create index concurrently refresh_token_expires on refresh_token (expires_at);

-- +goose Down
drop index concurrently if exists refresh_token_expires;
create index concurrently refresh_token_expiry on refresh_token (tenant_id, expires_at);
create index concurrently setting_schedule_due on setting_schedule (next_at);
create index concurrently book_metadata_release on book_metadata (tenant_id, app.release_day(metadata), book_id) where app.release_day(metadata) is not null;
