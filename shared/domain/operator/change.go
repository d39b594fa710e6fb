package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// suspend blocks the tenant everywhere from the next request on: first in the database, for tasks; then, by an
// announcement, in every process that caches it. Running tasks go back to the queue and wait there; this counts as no
// attempt.
func (o *Operator) suspend(ctx context.Context, i One) (any, error) {
	return o.setStatus(ctx, i.Name, suspended)
}

func (o *Operator) resume(ctx context.Context, i One) (any, error) {
	return o.setStatus(ctx, i.Name, active)
}

func (o *Operator) setStatus(ctx context.Context, name, status string) (any, error) {
	t, err := o.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if t.Status == deleting {
		return nil, fault.New(fault.Conflict, "name: tenant %s is being deleted; call delete again to finish", name)
	}
	givenBack, err := o.turn(ctx, t, status)
	if err != nil {
		return nil, err
	}
	d, err := o.changed(ctx, t)
	if err != nil {
		return nil, err
	}
	if status == suspended {
		d.GivenBack = &givenBack
		return d, nil
	}
	if err := scan.Resume(ctx, o.System, t.ID); err != nil {
		return nil, fmt.Errorf("the tenant is active, but not all of its libraries are queued for a scan; call resume again: %w", err)
	}
	return d, nil
}

// turn sets the status and, unless it is active, gives back running tasks; children first, as when one ends.
func (o *Operator) turn(ctx context.Context, t *row, status string) (givenBack int64, err error) {
	return db.RetryDeadlock(func() (int64, error) {
		var b pgx.Batch
		b.Queue(`update tenant set status = $1, status_at = now() where id = app.tenant() and status <> $1
			and (status <> 'deleting' or $1 = 'deleting')`, status)
		if status == active {
			b.Queue("select pg_notify($1, '')", task.Wake)
		} else {
			task.QueueGiveBack(&b, &givenBack)
		}
		err := o.System.Run(in(ctx, t), &b)
		return givenBack, err
	})
}

// changed announces the change and returns the tenant.
func (o *Operator) changed(ctx context.Context, t *row) (*Details, error) {
	announced := o.announce(ctx, t)
	d, err := o.details(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	d.Announced = &announced
	return d, nil
}

// alive returns a tenant by name, unless it is being deleted.
func (o *Operator) alive(ctx context.Context, name string) (*row, error) {
	t, err := o.find(ctx, name)
	if err == nil && t.Status == deleting {
		return nil, fault.New(fault.Conflict, "name: tenant %s is being deleted", name)
	}
	return t, err
}

// Hosts names hosts of a tenant.
type Hosts struct {
	Name  string   `json:"name"`
	Hosts []string `json:"hosts" arg:"host" help:"a host name; may be repeated"`
}

func (o *Operator) addHosts(ctx context.Context, i Hosts) (any, error) {
	return o.changeHosts(ctx, i, `update tenant set hosts = array(select distinct h from unnest(hosts || $1::text[]) h order by h)
		where id = app.tenant() and cardinality(array(select distinct h from unnest(hosts || $1::text[]) h)) <= $2`, maxHosts)
}

func (o *Operator) removeHosts(ctx context.Context, i Hosts) (any, error) {
	return o.changeHosts(ctx, i, "update tenant set hosts = array(select h from unnest(hosts) h where h <> all($1)) where id = app.tenant()")
}

func (o *Operator) changeHosts(ctx context.Context, i Hosts, sql string, args ...any) (any, error) {
	hosts, err := checkHosts(i.Hosts)
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, fault.Invalid("hosts", "is required")
	}
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	n, err := db.Exec(in(ctx, t), o.System, sql, append([]any{hosts}, args...)...)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fault.Invalid("hosts", "a tenant has at most %d; remove some first", maxHosts)
	}
	return o.changed(ctx, t)
}

// Roots names roots of a tenant.
type Roots struct {
	Name  string   `json:"name"`
	Roots []string `json:"roots" arg:"root" help:"/folder=bucket/prefix or s3://bucket/prefix; may be repeated"`
}

// grantRoots gives folders to a tenant. If a folder gets another bucket or prefix, the libraries below it get the same:
// their keys are relative, so their books stay.
func (o *Operator) grantRoots(ctx context.Context, i Roots) (any, error) {
	roots, err := checkRoots(i.Roots)
	if err != nil {
		return nil, err
	}
	if len(roots) == 0 {
		return nil, fault.Invalid("roots", "is required")
	}
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	var write pgx.Batch
	queueRoots(&write, roots)
	var moved []string
	err = o.changeRoots(ctx, t, &write, func(have []filesystem.Root, libraries []library) error {
		after := slices.Clone(have)
		for _, r := range roots {
			after = append(slices.DeleteFunc(after, func(o filesystem.Root) bool { return o.Path == r.Path }), r)
		}
		if len(after) > maxRoots {
			return fault.Invalid("roots", "a tenant has at most %d; revoke some first", maxRoots)
		}
		for k, l := range libraries {
			at, replaced := follows(have, after, l)
			if !replaced {
				continue
			}
			if l.Busy {
				return fault.New(fault.Conflict, "roots: a task of library %q at %s is pending or running; let it finish or cancel it first", l.Name, l.Path)
			}
			libraries[k].Bucket, libraries[k].Prefix = at.Root.Bucket, at.Prefix
			moved = append(moved, l.Name)
			write.Queue("update library set bucket = $2, prefix = $3 where tenant_id = app.tenant() and id = $1", l.ID, at.Root.Bucket, at.Prefix)
		}
		if l := astray(have, after, libraries); l != nil {
			return fault.New(fault.Conflict, "roots: library %q at %s would stay in the old bucket or prefix; move it to another folder or delete it first", l.Name, l.Path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	d, err := o.changed(ctx, t)
	if err == nil {
		d.Moved = moved
	}
	return d, err
}

// follows reports whether the root of a library has another bucket or prefix than before and than the library, and
// where the library's path leads now.
func follows(before, after []filesystem.Root, l library) (at filesystem.Place, yes bool) {
	was, err := filesystem.Locate(before, l.Path)
	if err != nil {
		return at, false
	}
	at, err = filesystem.Locate(after, l.Path)
	yes = err == nil && at.Root.Path == was.Root.Path && at.Root != was.Root && (at.Root.Bucket != l.Bucket || at.Prefix != l.Prefix)
	return at, yes
}

// Paths names roots that a tenant has.
type Paths struct {
	Name  string   `json:"name"`
	Paths []string `json:"paths" arg:"path" help:"the folder, as it was given; may be repeated"`
}

// revokeRoots removes roots from a tenant, unless a library is still in one.
func (o *Operator) revokeRoots(ctx context.Context, i Paths) (any, error) {
	if len(i.Paths) == 0 || len(i.Paths) > maxRoots {
		return nil, fault.Invalid("paths", "must have 1 to %d folders", maxRoots)
	}
	for k, path := range i.Paths { // normalized like a new root
		clean, err := filesystem.Clean(path)
		if err != nil {
			return nil, fault.Invalid("paths", "%q %v", path, err)
		}
		i.Paths[k] = clean
	}
	t, err := o.alive(ctx, i.Name)
	if err != nil {
		return nil, err
	}
	var write pgx.Batch
	write.Queue("delete from library_root where tenant_id = app.tenant() and path = any($1)", i.Paths)
	err = o.changeRoots(ctx, t, &write, func(have []filesystem.Root, libraries []library) error {
		for _, p := range i.Paths {
			if !slices.ContainsFunc(have, func(r filesystem.Root) bool { return r.Path == p }) {
				return fault.Invalid("paths", "%q is not a folder that the tenant was given", p)
			}
		}
		left := slices.DeleteFunc(slices.Clone(have), func(r filesystem.Root) bool { return slices.Contains(i.Paths, r.Path) })
		if l := astray(have, left, libraries); l != nil {
			return fault.New(fault.Conflict, "paths: library %q at %s needs this folder; delete the library first, or keep the folder", l.Name, l.Path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return o.changed(ctx, t)
}

// changeRoots writes what check allows; concurrent operators are serialized. Creating or moving a library locks its
// root until commit, so that check sees every library that could lose its place. No scan of a library starts meanwhile:
// its row refers to the library's. Libraries are locked before roots, as a change of a library's path does.
func (o *Operator) changeRoots(ctx context.Context, t *row, write *pgx.Batch, check func(have []filesystem.Root, libraries []library) error) error {
	return o.System.Tx(in(ctx, t), func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		var have []filesystem.Root
		var libraries []library
		b.Queue("select from tenant where id = app.tenant() for no key update")
		b.Queue("select from library where tenant_id = app.tenant() order by id for update")
		db.All(&b, &have, "select path, bucket, prefix from library_root where tenant_id = app.tenant() order by path for update")
		db.All(&b, &libraries, `select id, name, path, bucket, prefix, exists (select from task t where t.tenant_id = l.tenant_id
			and t.library_id = l.id and t.status in ('pending', 'running') and not `+task.PutOffSQL+`) as busy
			from library l where tenant_id = app.tenant() order by name`)
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		if err := check(have, libraries); err != nil {
			return err
		}
		return tx.SendBatch(ctx, write).Close()
	})
}

type library struct {
	ID     uuid.UUID `db:"id"`
	Name   string    `db:"name"`
	Path   string    `db:"path"`
	Bucket string    `db:"bucket"`
	Prefix string    `db:"prefix"`
	Busy   bool      `db:"busy"` // A task works on it, or is about to.
}

// astray returns a library whose path would no longer lead to the same place, or to its own objects; nil if there is
// none.
func astray(before, after []filesystem.Root, libraries []library) *library {
	for _, l := range libraries {
		bucket, prefix, err := filesystem.Resolve(before, l.Path)
		if err != nil {
			continue // it was below no root before
		}
		newBucket, newPrefix, err := filesystem.Resolve(after, l.Path)
		kept := newBucket == bucket && newPrefix == prefix || newBucket == l.Bucket && newPrefix == l.Prefix
		if err != nil || !kept {
			return &l
		}
	}
	return nil
}
