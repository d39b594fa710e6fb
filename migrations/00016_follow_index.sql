-- Where a book's content is now is found by the index of fingerprints, which holds none that are empty: without saying so,
-- Postgres read all books, and all locks, for each batch of moved ones.

-- +goose Up
-- +goose StatementBegin
do $$
declare
  v_now constant text := pg_get_functiondef('app.follow_content(uuid, uuid, uuid[], uuid[], uuid[])'::regprocedure);
  v_then constant text := replace(v_now, 'n.fingerprint = c.fingerprint and n.size = c.size
    where', 'n.fingerprint = c.fingerprint and n.fingerprint <> '''' and n.size = c.size
    where');
begin
  if v_then = v_now then
    raise 'app.follow_content is not the one of 00013';
  end if;
  execute v_then;
end $$;
-- +goose StatementEnd

-- +goose Down
-- It finds the same without.
select 1;
