package operator

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Tenant is the record of a tenant.
type Tenant struct {
	ID        uuid.UUID `json:"id"`
	Name      string    `json:"name"`
	Hosts     []string  `json:"hosts"`
	Status    string    `json:"status"`
	StatusAt  time.Time `json:"statusAt"`
	KeysAt    time.Time `json:"keysAt"`
	CreatedAt time.Time `json:"createdAt"`
	Quotas    Quotas    `json:"quotas"`
}

// Quotas limit a tenant; null means no limit.
type Quotas struct {
	Books          *int64 `json:"books"`
	RenditionBytes *int64 `json:"renditionBytes"`
	Scans          *int64 `json:"scans"`
	Requests       *int64 `json:"requests"`
}

// Details is a tenant with its configuration and usage.
type Details struct {
	Tenant
	Roots []string `json:"roots"`
	Usage Usage    `json:"usage"`
	// Admin is the administrator that was just created.
	Admin *Login `json:"admin,omitempty"`
	// User is the user who just got a new password.
	User *Login `json:"user,omitempty"`
	// Announced is false if Redis could not be notified of the change: see Operator.Settle.
	Announced *bool `json:"announced,omitempty"`
	// GivenBack counts the running tasks that a suspension put back in the queue.
	GivenBack *int64 `json:"tasksGivenBack,omitempty"`
	// Moved are the libraries that follow their folder to the bucket and prefix that it was just granted with.
	Moved []string `json:"movedLibraries,omitempty"`
	// Cleared is what rotate-keys deleted.
	Cleared *Cleared `json:"cleared,omitempty"`
}

// Usage is what a tenant uses. RenditionBytes were measured at MeasuredAt (null: not yet, or there is no quota for
// them).
type Usage struct {
	Users          int64      `json:"users" db:"users"`
	Libraries      int64      `json:"libraries" db:"libraries"`
	Series         int64      `json:"series" db:"series"`
	Books          int64      `json:"books" db:"books"`
	BookBytes      int64      `json:"bookBytes" db:"book_bytes"`
	RenditionBytes *int64     `json:"renditionBytes" db:"rendition_bytes"`
	MeasuredAt     *time.Time `json:"measuredAt" db:"measured_at"`
	OpenTasks      int64      `json:"openTasks" db:"open_tasks"`
}

func (t *row) record() Tenant {
	return Tenant{ID: t.ID, Name: t.Name, Hosts: t.Hosts, Status: t.Status, StatusAt: t.StatusAt, KeysAt: t.SecretAt, CreatedAt: t.CreatedAt,
		Quotas: Quotas{Books: t.MaxBooks, RenditionBytes: t.MaxRenditionBytes, Scans: t.MaxScans, Requests: t.MaxRequests}}
}

// One names a tenant.
type One struct {
	Name string `json:"name"`
}

func (o *Operator) show(ctx context.Context, i One) (any, error) {
	return o.details(ctx, i.Name)
}

func (o *Operator) details(ctx context.Context, name string) (*Details, error) {
	t, err := o.find(ctx, name)
	if err != nil {
		return nil, err
	}
	d := &Details{Tenant: t.record(), Roots: []string{}}
	var b pgx.Batch
	var roots []filesystem.Root
	var usage *Usage
	filesystem.Roots(&b, &roots)
	db.One(&b, &usage, `select (select count(*) from account where tenant_id = app.tenant()) as users,
		(select count(*) from library where tenant_id = app.tenant()) as libraries,
		coalesce(sum(c.series), 0)::bigint as series, coalesce(sum(c.books), 0)::bigint as books, coalesce(sum(c.bytes), 0)::bigint as book_bytes,
		max(u.bytes) as rendition_bytes, max(u.measured_at) as measured_at,
		(select count(*) from task where tenant_id = app.tenant() and status in ('pending', 'running')) as open_tasks
		from tenant t left join rendition_usage u on u.tenant_id = t.id and t.max_rendition_bytes is not null
		left join library_count c on c.tenant_id = t.id where t.id = app.tenant()`)
	if err := o.System.Run(in(ctx, t), &b); err != nil {
		return nil, err
	}
	for _, r := range roots {
		d.Roots = append(d.Roots, r.String())
	}
	d.Usage = *usage
	return d, nil
}

// List says which tenants to list.
type List struct {
	After string `json:"after" arg:"after" help:"start after this name"`
	Limit int    `json:"limit" arg:"limit" help:"number of tenants, 1 to 1000; default: 1000"`
}

// Tenants is a list of tenants by name.
type Tenants struct {
	Tenants []Tenant `json:"tenants"`
	More    bool     `json:"more"`
}

const maxList = 1000

func (o *Operator) list(ctx context.Context, i List) (any, error) {
	if i.Limit == 0 {
		i.Limit = maxList
	}
	if i.Limit < 1 || i.Limit > maxList {
		return nil, fault.Invalid("limit", "must be 1 to %d, is %d", maxList, i.Limit)
	}
	rows, err := db.List[row](nobody(ctx), o.System, "select "+columns+" from tenant where name > $1 order by name limit $2", i.After, i.Limit+1)
	if err != nil {
		return nil, err
	}
	out := Tenants{Tenants: []Tenant{}, More: len(rows) > i.Limit}
	for _, t := range rows[:min(len(rows), i.Limit)] {
		out.Tenants = append(out.Tenants, t.record())
	}
	return out, nil
}
