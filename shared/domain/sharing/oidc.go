package sharing

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// OIDCMapping adds members of a group of the identity provider to an access group when they sign in.
type OIDCMapping struct {
	ID            uuid.UUID `json:"id" db:"id"`
	OIDCGroupName string    `json:"oidcGroupName" db:"oidc_group_name"`
	CreatedAt     time.Time `json:"createdAt" db:"created_at"`
}

// OIDCMappingBody is a group of the identity provider.
type OIDCMappingBody struct {
	OIDCGroupName string `json:"oidcGroupName" minLength:"1" maxLength:"500" doc:"Name exactly as the identity provider writes it; case-sensitive"`
}

// OIDCMappingInput names a mapping of an access group.
type OIDCMappingInput struct {
	httpapi.IDInput
	MappingID uuid.UUID `path:"mappingId" format:"uuid"`
}

// mostMappings is the maximum number of mappings per access group.
const mostMappings = 100

// The sources of memberships.
const (
	manual   = "manual"
	fromOIDC = "oidc"
)

func (s *service) oidcRoutes(a *httpapi.API) {
	const at = "/access-groups/{id}/oidc-mappings"
	add := operation("POST", at, "addAccessGroupOidcMapping",
		"Map an identity provider's group to an access group: at sign-in its members join, and users who joined this way and left it leave")
	add.Status = 201
	httpapi.Register(a, add,
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body OIDCMappingBody
		}) (*OIDCMapping, error) {
			return addMapping(ctx, s.database, in.ID, in.Body.OIDCGroupName)
		})
	httpapi.Register(a, operation("DELETE", at+"/{mappingId}", "removeAccessGroupOidcMapping",
		"Remove an OIDC group mapping; users who joined through it leave at their next sign-in"),
		func(ctx context.Context, in *OIDCMappingInput) (*httpapi.None, error) {
			n, err := db.Exec(ctx, s.database, "delete from access_group_oidc_mapping where tenant_id = app.tenant() and group_id = $1 and id = $2", in.ID, in.MappingID)
			if err == nil && n == 0 {
				err = fault.New(fault.NotFound, "Access group or mapping not found")
			}
			return nil, err
		})
}

func queueMappings(b *pgx.Batch, dst *[]OIDCMapping, group uuid.UUID) {
	db.All(b, dst, "select id, oidc_group_name, created_at from access_group_oidc_mapping where tenant_id = app.tenant() and group_id = $1 order by oidc_group_name", group)
}

// addMapping adds a mapping. Concurrent calls for one group are serialized.
func addMapping(ctx context.Context, d *db.DB, group uuid.UUID, name string) (*OIDCMapping, error) {
	if !naming.Printable(&name) {
		return nil, fault.Invalid("oidcGroupName", "must contain visible characters and no control characters")
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	var exists *uuid.UUID
	var out *OIDCMapping
	db.Value(&b, &exists, "select id from access_group where tenant_id = app.tenant() and id = $1 for no key update", group)
	db.One(&b, &out, `insert into access_group_oidc_mapping (tenant_id, id, group_id, oidc_group_name)
		select g.tenant_id, $2, g.id, $3 from access_group g where g.tenant_id = app.tenant() and g.id = $1
		  and (select count(*) from access_group_oidc_mapping m where m.tenant_id = app.tenant() and m.group_id = g.id) < $4
		returning id, oidc_group_name, created_at`, group, id, name, mostMappings)
	err = d.Run(ctx, &b)
	switch {
	case db.Conflict(err, "access_group_oidc_mapping_name"):
		return nil, fault.Taken("oidcGroupName", "The access group already has this mapping")
	case err != nil:
		return nil, err
	case exists == nil:
		return nil, fault.Missing(groups.what)
	case out == nil:
		return nil, fault.New(fault.Conflict, "The access group already has %d mappings, the most it can have; remove one first", mostMappings)
	}
	return out, nil
}

// QueueMembership syncs a user's memberships with the access groups to which the given groups of an identity provider
// are mapped. The user leaves a group when no provider claims it any more. Memberships that people have set stay, and
// those that another provider claims: signing in at one that does not know a group must not lift its restrictions.
// changed counts the changes.
func QueueMembership(b *pgx.Batch, account, provider uuid.UUID, in []string, changed *int64) {
	b.Queue("select from account where tenant_id = app.tenant() and id = $1 for no key update", account) // who signs in at two providers at once
	db.Value(b, changed, `with wanted as (
		  select distinct m.group_id from access_group_oidc_mapping m where m.tenant_id = app.tenant() and m.oidc_group_name = any($2)),
		withdrawn as (
		  delete from access_group_claim c where c.tenant_id = app.tenant() and c.account_id = $1 and c.provider_id = $3
		  and c.group_id not in (select group_id from wanted)),
		claimed as (
		  insert into access_group_claim (tenant_id, group_id, account_id, provider_id) select app.tenant(), group_id, $1, $3 from wanted order by group_id
		  on conflict do nothing),
		left_ as (
		  delete from access_group_member m where m.tenant_id = app.tenant() and m.account_id = $1 and m.source = '`+fromOIDC+`'
		  and not exists (select from access_group_claim c where c.tenant_id = app.tenant() and c.account_id = $1 and c.group_id = m.group_id and c.provider_id <> $3
		    and exists (select from access_group_oidc_mapping x where x.tenant_id = c.tenant_id and x.group_id = c.group_id))
		  and m.group_id not in (select group_id from wanted) returning 1),
		joined as (
		  insert into access_group_member (tenant_id, group_id, account_id, source, provider_id) select app.tenant(), group_id, $1, '`+fromOIDC+`', $3 from wanted order by group_id
		  on conflict do nothing returning 1)
		select (select count(*) from left_) + (select count(*) from joined)`, account, in, provider)
}
