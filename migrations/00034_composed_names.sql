-- Names are kept in composed characters (NFC), since the index compares bytes: "é" is one character or two, by what typed it.
-- Two names that would be the same then stay as they are.

-- +goose Up
update account a set username = normalize(username) where username is not nfc normalized and not exists (
  select from account o where o.tenant_id = a.tenant_id and o.id <> a.id and lower(normalize(o.username)) = lower(normalize(a.username)));
update account a set email = normalize(email) where email is not nfc normalized and not exists (
  select from account o where o.tenant_id = a.tenant_id and o.id <> a.id and lower(normalize(o.email)) = lower(normalize(a.email)));
update library l set name = normalize(name) where name is not nfc normalized and not exists (
  select from library o where o.tenant_id = l.tenant_id and o.id <> l.id and lower(normalize(o.name)) = lower(normalize(l.name)));

-- +goose Down
select 1;
