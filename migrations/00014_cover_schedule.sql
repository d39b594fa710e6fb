-- The schedules by which missing covers are made.

-- +goose Up

-- The scheduler looks for them over all tenants, every few seconds.
create index setting_cover_scheduled on setting (key, tenant_id) where key in ('thumbnail.book_cron_schedule', 'thumbnail.series_cron_schedule');

-- +goose Down
drop index setting_cover_scheduled;
