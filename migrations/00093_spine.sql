-- The fingerprint of an EPUB of images is of its pages in their order, as the programs now compute it: the books there
-- are keep being recognised where their files move.

-- +goose Up
update book b set fingerprint = n.print
  from page_index i cross join lateral (
    select encode(sha256(string_agg(decode(lpad(to_hex(u.crc), 8, '0') || lpad(to_hex(u.size), 16, '0'), 'hex'), '' order by u.place)), 'hex') as print
    from unnest(i.crcs, i.sizes) with ordinality as u(crc, size, place)) n
  where i.tenant_id = b.tenant_id and i.book_id = b.id and cardinality(i.names) > 0 and b.format = 'epub' and b.analyzed
    and b.fingerprint <> '' and b.fingerprint <> n.print;

-- +goose Down
-- The fingerprints stay.
select 1;
