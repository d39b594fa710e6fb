-- The ends of passes (00019), one lookup for each session that is told: a book may have thousands. An index that was interrupted
-- while it was made is there, but not valid: it is made anew.

-- +goose NO TRANSACTION
-- +goose Up
drop index if exists reading_session_reset;
create index concurrently reading_session_reset on reading_session (tenant_id, account_id, book_id, pass desc) where kind = 'reset';

-- +goose Down
drop index reading_session_reset;
