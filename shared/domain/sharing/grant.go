package sharing

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Grant allows or denies a sharing tag.
type Grant struct {
	SharingTagID   uuid.UUID `json:"sharingTagId" db:"sharing_tag_id"`
	SharingTagName string    `json:"sharingTagName" db:"sharing_tag_name"`
	AccessMode     string    `json:"accessMode" db:"mode" enum:"allow,deny"`
	CreatedAt      time.Time `json:"createdAt" db:"created_at"`
}

// UserGrant is a Grant of a user.
type UserGrant struct {
	ID uuid.UUID `json:"id" db:"id"`
	Grant
}

// UserGrants are a user's direct grants, by the tags' names.
type UserGrants struct {
	UserID uuid.UUID   `json:"userId"`
	Grants []UserGrant `json:"grants" nullable:"false"`
}

// EffectiveGrants are the grants that apply to a user, by the tags' names.
type EffectiveGrants struct {
	UserID uuid.UUID        `json:"userId"`
	Grants []EffectiveGrant `json:"grants" nullable:"false"`
}

// EffectiveGrant is a sharing tag that is effectively allowed or denied.
type EffectiveGrant struct {
	SharingTagID   uuid.UUID `json:"sharingTagId"`
	SharingTagName string    `json:"sharingTagName"`
	AccessMode     string    `json:"accessMode" enum:"allow,deny"`
	Sources        []Source  `json:"sources" nullable:"false" doc:"Where the grant comes from: the user or access groups"`
}

// Source is the origin of a grant.
type Source struct {
	Kind      string     `json:"kind" enum:"direct,group"`
	GroupID   *uuid.UUID `json:"groupId"`
	GroupName *string    `json:"groupName"`
}

// grantee is a kind of owner of grants.
type grantee struct{ table, column, what string }

var (
	users   = grantee{"account", "account_id", "User"}
	members = grantee{"access_group", "group_id", "Access group"}
)

const grantColumns = "g.id, g.sharing_tag_id, t.name as sharing_tag_name, g.mode, g.created_at"

func (w grantee) queueExists(b *pgx.Batch, dst *bool, id uuid.UUID) {
	db.Value(b, dst, "select exists (select from "+w.table+" where tenant_id = app.tenant() and id = $1)", id)
}

// of runs the statements that queue adds to the batch; NotFound if there is no such grantee.
func (w grantee) of(ctx context.Context, d *db.DB, id uuid.UUID, queue func(*pgx.Batch)) error {
	var b pgx.Batch
	var exists bool
	w.queueExists(&b, &exists, id)
	queue(&b)
	if err := d.Run(ctx, &b); err != nil {
		return err
	}
	if !exists {
		return fault.Missing(w.what)
	}
	return nil
}

// queue adds the select of a grantee's grants to a batch.
func (w grantee) queue(b *pgx.Batch, dst *[]UserGrant, id uuid.UUID) {
	db.All(b, dst, "select "+grantColumns+` from sharing_grant g join sharing_tag t on t.tenant_id = g.tenant_id and t.id = g.sharing_tag_id
		where g.tenant_id = app.tenant() and g.`+w.column+" = $1 order by t.name collate natural_order", id)
}

// grant allows or denies an owner a tag, replacing an earlier grant.
func (w grantee) grant(ctx context.Context, d *db.DB, id uuid.UUID, in GrantBody) (UserGrant, error) {
	var b pgx.Batch
	var exists bool
	var out *UserGrant
	w.queueExists(&b, &exists, id)
	db.One(&b, &out, `with g as (
		  insert into sharing_grant as g (tenant_id, id, sharing_tag_id, `+w.column+`, mode)
		  select t.tenant_id, gen_random_uuid(), t.id, w.id, $3 from sharing_tag t join `+w.table+` w on w.tenant_id = t.tenant_id and w.id = $1
		  where t.tenant_id = app.tenant() and t.id = $2
		  on conflict (tenant_id, `+w.column+", sharing_tag_id) where "+w.column+` is not null do update set mode = excluded.mode returning *)
		select `+grantColumns+" from g join sharing_tag t on t.tenant_id = g.tenant_id and t.id = g.sharing_tag_id", id, in.SharingTagID, in.AccessMode)
	if err := d.Run(ctx, &b); err != nil {
		return UserGrant{}, err
	}
	switch {
	case !exists:
		return UserGrant{}, fault.Missing(w.what)
	case out == nil:
		return UserGrant{}, fault.Missing(tags.what)
	}
	return *out, nil
}

func (w grantee) revoke(ctx context.Context, d *db.DB, id, tag uuid.UUID) error {
	n, err := db.Exec(ctx, d, "delete from sharing_grant where tenant_id = app.tenant() and "+w.column+" = $1 and sharing_tag_id = $2", id, tag)
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "There is no grant of this sharing tag")
	}
	return err
}

// QueueGrants adds the select of a user's direct grants to a batch.
func QueueGrants(b *pgx.Batch, dst *[]UserGrant, user uuid.UUID) { users.queue(b, dst, user) }

func userGrants(ctx context.Context, d *db.DB, user uuid.UUID) (*UserGrants, error) {
	out := &UserGrants{UserID: user}
	return out, users.of(ctx, d, user, func(b *pgx.Batch) { users.queue(b, &out.Grants, user) })
}

// said is a grant of a user with its origin.
type said struct {
	Tag       uuid.UUID  `db:"sharing_tag_id"`
	Name      string     `db:"name"`
	Mode      string     `db:"mode"`
	GroupID   *uuid.UUID `db:"group_id"`
	GroupName *string    `db:"group_name"`
}

// effectiveGrants returns a user's grants as app.enter evaluates them.
func effectiveGrants(ctx context.Context, d *db.DB, user uuid.UUID) (*EffectiveGrants, error) {
	var all []said
	err := users.of(ctx, d, user, func(b *pgx.Batch) {
		db.All(b, &all, `select g.sharing_tag_id, t.name, g.mode, g.group_id, n.name as group_name from sharing_grant g
		join sharing_tag t on t.tenant_id = g.tenant_id and t.id = g.sharing_tag_id
		left join access_group n on n.tenant_id = g.tenant_id and n.id = g.group_id
		where g.tenant_id = app.tenant() and (g.account_id = $1
		  or g.group_id in (select m.group_id from access_group_member m where m.tenant_id = app.tenant() and m.account_id = $1))
		order by t.name collate natural_order, t.id, g.mode desc, g.group_id is not null, n.name collate natural_order`, user)
	})
	if err != nil {
		return nil, err
	}
	out := &EffectiveGrants{UserID: user, Grants: []EffectiveGrant{}}
	for _, s := range all {
		source := Source{"direct", nil, nil}
		if s.GroupID != nil {
			source = Source{"group", s.GroupID, s.GroupName}
		}
		n := len(out.Grants) - 1
		switch {
		case n < 0 || out.Grants[n].SharingTagID != s.Tag:
			out.Grants = append(out.Grants, EffectiveGrant{s.Tag, s.Name, s.Mode, []Source{source}})
		case out.Grants[n].AccessMode == s.Mode: // a deny comes first and overrides every allow
			out.Grants[n].Sources = append(out.Grants[n].Sources, source)
		}
	}
	return out, nil
}
