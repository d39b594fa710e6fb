-- What a user read in a time, whatever the books. An index that was interrupted while it was made is there, but not
-- valid: it is made anew.

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists reading_session_ended;
create index concurrently reading_session_ended on reading_session (tenant_id, account_id, ended_at);

-- +goose Down
drop index reading_session_ended;
