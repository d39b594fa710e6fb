-- Where an upload in parts goes, whatever becomes of its library's path meanwhile; null for those begun before.

-- +goose Up
alter table upload add column bucket text, add column prefix text;

-- +goose Down
alter table upload drop column bucket, drop column prefix;
