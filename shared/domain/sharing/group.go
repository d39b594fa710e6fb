package sharing

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// GroupDetails is the full record of an access group.
type GroupDetails struct {
	Group
	Grants       []Grant       `json:"grants" nullable:"false" doc:"Sorted by the names of the tags"`
	Members      []Member      `json:"members" nullable:"false" doc:"Sorted by name"`
	OIDCMappings []OIDCMapping `json:"oidcMappings" nullable:"false" doc:"Sorted by name"`
}

// Member is a user in a group.
type Member struct {
	UserID    uuid.UUID `json:"userId" db:"user_id"`
	Username  string    `json:"username" db:"username"`
	Source    string    `json:"source" db:"source" enum:"manual,oidc" doc:"oidc means membership through a group of the identity provider"`
	CreatedAt time.Time `json:"createdAt" db:"created_at" doc:"Time at which the user joined"`
}

func queueMembers(b *pgx.Batch, dst *[]Member, group uuid.UUID) {
	db.All(b, dst, `select m.account_id as user_id, a.username, m.source, m.created_at
		from access_group_member m join account a on a.tenant_id = m.tenant_id and a.id = m.account_id
		where m.tenant_id = app.tenant() and m.group_id = $1 order by lower(a.username), a.id`, group)
}

func groupDetails(ctx context.Context, d *db.DB, id uuid.UUID) (*GroupDetails, error) {
	var b pgx.Batch
	var g *Group
	var grants []UserGrant
	out := &GroupDetails{Grants: []Grant{}}
	groups.queue(&b, &g, id)
	members.queue(&b, &grants, id)
	queueMembers(&b, &out.Members, id)
	queueMappings(&b, &out.OIDCMappings, id)
	if _, err := groups.found(g, d.Run(ctx, &b)); err != nil {
		return nil, err
	}
	out.Group = *g
	for _, grant := range grants {
		out.Grants = append(out.Grants, grant.Grant)
	}
	return out, nil
}

// groupsOf returns the groups of a user.
func groupsOf(ctx context.Context, d *db.DB, user uuid.UUID) (out []GroupSummary, err error) {
	return out, users.of(ctx, d, user, func(b *pgx.Batch) {
		db.All(b, &out, `select n.id, n.name, n.description from access_group n join access_group_member m on m.tenant_id = n.tenant_id and m.group_id = n.id
		where n.tenant_id = app.tenant() and m.account_id = $1 order by n.name collate natural_order`, user)
	})
}

// addMembers adds users to a group, all or none: NotFound if one is unknown.
func addMembers(ctx context.Context, d *db.DB, group uuid.UUID, joining []uuid.UUID) ([]Member, error) {
	var b pgx.Batch
	var exists bool
	var unknown []uuid.UUID
	var out []Member
	groups.queueExists(&b, &exists, group)
	db.Values(&b, &unknown, "select u.id from unnest($1::uuid[]) u(id) where not exists (select from account a where a.tenant_id = app.tenant() and a.id = u.id)", joining)
	b.Queue(`insert into access_group_member (tenant_id, group_id, account_id)
		select g.tenant_id, g.id, a.id from access_group g join account a on a.tenant_id = g.tenant_id and a.id = any($2)
		where g.tenant_id = app.tenant() and g.id = $1
		  and (select count(*) from account a where a.tenant_id = app.tenant() and a.id = any($2)) = (select count(distinct u) from unnest($2::uuid[]) u)
		order by a.id on conflict (tenant_id, group_id, account_id) do update set source = '`+manual+`', provider_id = null`, group, joining)
	queueMembers(&b, &out, group)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case !exists:
		return nil, fault.Missing(groups.what)
	case len(unknown) > 0:
		return nil, fault.New(fault.NotFound, "There is no user with the id %s; no users were added", unknown[0])
	}
	return out, nil
}

func removeMember(ctx context.Context, d *db.DB, group, user uuid.UUID) error {
	n, err := db.Exec(ctx, d, "delete from access_group_member where tenant_id = app.tenant() and group_id = $1 and account_id = $2", group, user)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "Access group or member not found")
	}
	return err
}
