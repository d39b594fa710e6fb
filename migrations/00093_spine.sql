-- The fingerprint of an EPUB of images is of its pages in their order, as the programs now compute it: the books there
-- are keep being recognised where their files move. Only those change whose images have names in another order.

-- +goose Up
with changed as (
  select b.tenant_id, b.id, b.fingerprint as was, n.print
  from book b join page_index i on i.tenant_id = b.tenant_id and i.book_id = b.id and cardinality(i.names) > 0
  cross join lateral (
    select encode(sha256(string_agg(decode(lpad(to_hex(u.crc), 8, '0') || lpad(to_hex(u.size), 16, '0'), 'hex'), '' order by u.place)), 'hex') as print
    from unnest(i.crcs, i.sizes) with ordinality as u(crc, size, place)) n
  where b.format = 'epub' and b.fingerprint <> '' and b.fingerprint <> n.print),
grouped as (
  update duplicate d set fingerprint = c.print from (select tenant_id, was, min(print) as print from changed group by 1, 2 having min(print) = max(print)) c
  where d.tenant_id = c.tenant_id and d.fingerprint = c.was
    and not exists (select from duplicate o where o.tenant_id = d.tenant_id and o.fingerprint = c.print))
update book b set fingerprint = c.print from changed c where b.tenant_id = c.tenant_id and b.id = c.id;

-- +goose Down
-- The fingerprints stay.
select 1;
