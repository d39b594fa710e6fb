-- What a user finished in a time, whatever the books; for the rest see 00055.

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists completion_completed;
create index concurrently completion_completed on completion (tenant_id, account_id, completed_at);

-- +goose Down
drop index completion_completed;
