package preset

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// most is the maximum number of filters per user, and mostBytes that of their conditions together, in bytes: a page of
// a list may hold them all.
const (
	most      = 500
	mostBytes = 2 << 20
)

// fits is SQL for whether a condition ($5) has room beside those of the other filters of the caller, without filter $1.
const fits = "(select coalesce(sum(octet_length(p.condition::text)), 0)" + mine + " and p.id is distinct from $1::uuid) + coalesce(octet_length($5::jsonb::text), 0) <= $7"

func full() error {
	return fault.New(fault.Conflict, "You can have %d filter presets, whose conditions take %d MiB together; delete one first", most, mostBytes>>20)
}

const (
	columns = "p.id, p.name, p.scope, p.target, p.library_id, p.condition, p.query, p.sort, p.created_at, p.updated_at"
	mine    = " from filter_preset p where p.tenant_id = app.tenant() and p.account_id = app.account()"
)

// list returns the caller's filters of a scope and target ("" for any); with a library, those for it and for all
// libraries.
func list(ctx context.Context, d *db.DB, scope, target string, library *uuid.UUID, limit, offset int) ([]Preset, int64, error) {
	const these = mine + " and ($1 = '' or p.scope = $1) and ($2 = '' or p.target = $2) and ($3::uuid is null or p.library_id is null or p.library_id = $3)"
	var b pgx.Batch
	var page []Preset
	var total int64
	db.All(&b, &page, "select "+columns+these+" order by p.name collate natural_order, p.id limit $4 offset $5", scope, target, library, limit, offset)
	db.Value(&b, &total, "select count(*)"+these, scope, target, library)
	return page, total, d.Run(ctx, &b)
}

func get(ctx context.Context, d *db.DB, id uuid.UUID) (*Preset, error) {
	return found(db.Get[Preset](ctx, d, "select "+columns+mine+" and p.id = $1", id))
}

func found(p *Preset, err error) (*Preset, error) {
	if err == nil && p == nil {
		err = fault.Missing("Filter preset")
	}
	return p, err
}

// refused turns a constraint violation into the error for the client.
func refused(err error, b *Body) error {
	switch {
	case db.Conflict(err, "filter_preset_name"), db.Conflict(err, "filter_preset_global_name"):
		return fault.Taken("name", "There is already a filter preset named %s", b.Name)
	case db.Dangling(err, "filter_preset_tenant_id_library_id_fkey"):
		return fault.Invalid("libraryId", "there is no such library")
	}
	return err
}

// create stores a filter. Concurrent requests of one user are serialized, so that they cannot exceed the limits.
func create(ctx context.Context, d *db.DB, scope, target string, body *Body) (*Preset, error) {
	if err := body.check(target); err != nil {
		return nil, err
	}
	var b pgx.Batch
	var out *Preset
	b.Queue("select from account where tenant_id = app.tenant() and id = app.account() for no key update")
	db.One(&b, &out, `insert into filter_preset as p (tenant_id, account_id, id, scope, target, name, library_id, condition, query, sort)
		select app.tenant(), app.account(), gen_random_uuid(), $8, $9, $2, $3::uuid, $5::jsonb, $4, $6 where (select count(*)`+mine+`) < $10 and `+fits+` returning `+columns,
		nil, body.Name, body.LibraryID, body.Query, body.Condition, body.Sort, mostBytes, scope, target, most)
	if err := d.Run(ctx, &b); err != nil {
		return nil, refused(err, body)
	}
	if out == nil {
		return nil, full()
	}
	return out, nil
}

// replace replaces the content of a filter; scope and target stay.
func replace(ctx context.Context, d *db.DB, id uuid.UUID, body *Body) (*Preset, error) {
	// The target decides which conditions are valid, and never changes.
	p, err := get(ctx, d, id)
	if err != nil {
		return nil, err
	}
	if err := body.check(p.Target); err != nil {
		return nil, err
	}
	var b pgx.Batch
	var out *Preset
	b.Queue("select from account where tenant_id = app.tenant() and id = app.account() for no key update")
	db.One(&b, &out, `update filter_preset p set name = $2, library_id = $3, condition = $5, query = $4, sort = $6, updated_at = now()
		where p.tenant_id = app.tenant() and p.account_id = app.account() and p.id = $1 and `+fits+` returning `+columns,
		id, body.Name, body.LibraryID, body.Query, body.Condition, body.Sort, mostBytes)
	db.One(&b, &p, "select "+columns+mine+" and p.id = $1", id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, refused(err, body)
	}
	if p != nil && out == nil {
		return nil, full()
	}
	return found(out, nil)
}

func remove(ctx context.Context, d *db.DB, id uuid.UUID) error {
	n, err := db.Exec(ctx, d, "delete"+mine+" and p.id = $1", id)
	if err == nil && n == 0 {
		err = fault.Missing("Filter preset")
	}
	return err
}
