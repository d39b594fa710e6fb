-- Books are in the order of their files' names without extension, folder by folder.

-- +goose Up

-- file_order is what a key is sorted by, collated in natural_order. The extension is left out: the dot comes after a space and a hyphen,
-- so that "Title 2.cbz" would be before "Title.cbz", and before digits, so that "10.5.cbz" would be before "10.cbz". A tab comes before
-- all that a name has: what is in the folder "Title" comes before what is in "Title 2".
-- +goose StatementBegin
create function app.file_order(p_key text) returns text language sql immutable parallel safe as $$
  select replace(regexp_replace(p_key, '\.[^./]*$', ''), '/', E'\t');
$$;
-- +goose StatementEnd

-- +goose Down
drop function app.file_order;
