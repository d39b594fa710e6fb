package sharing

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Tag is a sharing tag.
type Tag struct {
	TagSummary
	SeriesCount int64     `json:"seriesCount" db:"series_count" minimum:"0"`
	UserCount   int64     `json:"userCount" db:"user_count" minimum:"0" doc:"Number of users who are allowed or denied the tag directly, not through a group"`
	CreatedAt   time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt   time.Time `json:"updatedAt" db:"updated_at"`
}

// TagSummary is a sharing tag of a series.
type TagSummary struct {
	ID          uuid.UUID `json:"id" db:"id"`
	Name        string    `json:"name" db:"name"`
	Description *string   `json:"description" db:"description"`
}

// Group is an access group.
type Group struct {
	GroupSummary
	MemberCount int64     `json:"memberCount" db:"member_count" minimum:"0"`
	GrantCount  int64     `json:"grantCount" db:"grant_count" minimum:"0"`
	CreatedAt   time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt   time.Time `json:"updatedAt" db:"updated_at"`
}

// GroupSummary is an access group of a user.
type GroupSummary struct {
	ID          uuid.UUID `json:"id" db:"id"`
	Name        string    `json:"name" db:"name"`
	Description *string   `json:"description" db:"description"`
}

// most is the maximum number of sharing tags, and of access groups, per tenant.
const most = 1000

// named is a table of things with a name and a description; T is the record.
type named[T any] struct {
	table, what string
	columns     string // of a row n
}

var (
	tags = named[Tag]{"sharing_tag", "Sharing tag", `n.id, n.name, n.description, n.created_at, n.updated_at,
		(select count(*) from series_sharing_tag x join series s on s.tenant_id = x.tenant_id and s.id = x.series_id
		  where x.tenant_id = app.tenant() and x.sharing_tag_id = n.id) as series_count,
		(select count(*) from sharing_grant x where x.tenant_id = app.tenant() and x.sharing_tag_id = n.id and x.account_id is not null) as user_count`}
	groups = named[Group]{"access_group", "Access group", `n.id, n.name, n.description, n.created_at, n.updated_at,
		(select count(*) from access_group_member x where x.tenant_id = app.tenant() and x.group_id = n.id) as member_count,
		(select count(*) from sharing_grant x where x.tenant_id = app.tenant() and x.group_id = n.id) as grant_count`}
)

func (k named[T]) list(ctx context.Context, d *db.DB, limit, offset int) ([]T, int64, error) {
	var b pgx.Batch
	var page []T
	var total int64
	db.All(&b, &page, "select "+k.columns+" from "+k.table+" n where n.tenant_id = app.tenant() order by n.name collate natural_order, n.id limit $1 offset $2", limit, offset)
	db.Value(&b, &total, "select count(*) from "+k.table+" where tenant_id = app.tenant()")
	return page, total, d.Run(ctx, &b)
}

// queue adds the select of one to a batch; dst is nil if there is none.
func (k named[T]) queue(b *pgx.Batch, dst **T, id uuid.UUID) {
	db.One(b, dst, "select "+k.columns+" from "+k.table+" n where n.tenant_id = app.tenant() and n.id = $1", id)
}

func (k named[T]) queueExists(b *pgx.Batch, dst *bool, id uuid.UUID) {
	db.Value(b, dst, "select exists (select from "+k.table+" where tenant_id = app.tenant() and id = $1)", id)
}

func (k named[T]) get(ctx context.Context, d *db.DB, id uuid.UUID) (*T, error) {
	var b pgx.Batch
	var out *T
	k.queue(&b, &out, id)
	return k.found(out, d.Run(ctx, &b))
}

func (k named[T]) found(out *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.Missing(k.what)
	}
	return out, nil
}

// refused turns a unique violation into the error for the client.
func (k named[T]) refused(err error, name string) error {
	if db.Conflict(err, k.table+"_name") {
		return fault.Taken("name", "Another %s is already named %s", strings.ToLower(k.what), name)
	}
	return err
}

// create creates one. Concurrent calls are serialized, so that they cannot exceed the limit.
func (k named[T]) create(ctx context.Context, d *db.DB, in *NewBody) (*T, error) {
	if !naming.Printable(&in.Name) {
		return nil, errName
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	var b pgx.Batch
	var out *T
	b.Queue("select pg_advisory_xact_lock(hashtextextended($1 || app.tenant(), 0))", k.table)
	b.Queue("insert into "+k.table+" (tenant_id, id, name, description) select app.tenant(), $1, $2, $3 where (select count(*) from "+k.table+
		" where tenant_id = app.tenant()) < $4", id, in.Name, in.Description, most)
	k.queue(&b, &out, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, k.refused(err, in.Name)
	}
	if out == nil {
		return nil, fault.New(fault.Conflict, "There are already %d, the most there can be; delete one first", most)
	}
	return out, nil
}

var errName = fault.Invalid("name", "must contain visible characters and no control characters")

// update changes the fields that were sent.
func (k named[T]) update(ctx context.Context, d *db.DB, id uuid.UUID, in ChangeBody) (*T, error) {
	name := in.Name.Or("")
	if in.Name.Set && !naming.Printable(&name) {
		return nil, errName
	}
	var b pgx.Batch
	var out *T
	b.Queue("update "+k.table+` set name = case when $2 then $3 else name end, description = case when $4 then $5 else description end, updated_at = now()
		where tenant_id = app.tenant() and id = $1`, id, in.Name.Set, name, in.Description.Set, in.Description.Value)
	k.queue(&b, &out, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, k.refused(err, name)
	}
	return k.found(out, nil)
}

func (k named[T]) remove(ctx context.Context, d *db.DB, id uuid.UUID) error {
	n, err := db.Exec(ctx, d, "delete from "+k.table+" where tenant_id = app.tenant() and id = $1", id)
	if err == nil && n == 0 {
		err = fault.Missing(k.what)
	}
	return err
}
