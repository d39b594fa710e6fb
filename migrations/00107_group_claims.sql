-- Several identity providers can say that a user belongs to an access group: the user leaves it when none says so any more.

-- +goose Up
set local lock_timeout = '5s';
create table access_group_claim (
  tenant_id   uuid not null,
  group_id    uuid not null,
  account_id  uuid not null,
  provider_id uuid not null,
  primary key (tenant_id, account_id, provider_id, group_id),
  foreign key (tenant_id, group_id) references access_group on delete cascade,
  foreign key (tenant_id, account_id) references account on delete cascade,
  foreign key (tenant_id, provider_id) references oidc_provider on delete cascade
);
create index access_group_claim_group on access_group_claim (tenant_id, group_id);
create index access_group_claim_provider on access_group_claim (tenant_id, provider_id);
call app.protect('access_group_claim');
insert into access_group_claim (tenant_id, group_id, account_id, provider_id)
  select m.tenant_id, m.group_id, m.account_id, m.provider_id from access_group_member m
  join oidc_provider p on p.tenant_id = m.tenant_id and p.id = m.provider_id where m.source = 'oidc';

-- +goose Down
drop table access_group_claim;
