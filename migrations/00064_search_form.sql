-- Series are to be found by their other titles, too: this is what is searched for in them.

-- +goose Up
-- search_form is a title as naming.Normalize writes it: lower case, single spaces, Latin letters without accents.
-- +goose StatementBegin
create function app.search_form(p_title text) returns text language sql immutable strict parallel safe as $$
  select pg_catalog.normalize(pg_catalog.btrim(pg_catalog.regexp_replace(pg_catalog.regexp_replace(pg_catalog.normalize(pg_catalog.lower(p_title), 'NFD'),
    '([a-z\u00aa\u00ba\u00df-\u02b8\u1d00-\u1d25\u1e00-\u1eff])[\u0300-\u036f]+', '\1', 'g'), '[\s\u0085\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+', ' ', 'g')), 'NFC')
$$;
-- +goose StatementEnd

-- +goose Down
drop function app.search_form(text);
