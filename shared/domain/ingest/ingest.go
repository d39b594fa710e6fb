package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Looker syncs the books of some keys with the store; it is the scanner.
type Looker interface {
	Look(ctx context.Context, tenant, library uuid.UUID, keys []string) error
}

// Ingest processes notifications. It is safe for concurrent use.
type Ingest struct {
	System  *db.DB // the role that sees every tenant's libraries
	Scanner Looker

	gather gather
}

// Objects processes one notification. A nil error means that all its books agree with the store; any other error
// redelivers it.
func (i *Ingest) Objects(ctx context.Context, body json.RawMessage) error {
	objects, err := ParseEvent(body)
	if err != nil || len(objects) == 0 {
		return err
	}
	return i.gather.do(ctx, objects, i.look)
}

// library is a library that contains an object.
type library struct {
	Tenant uuid.UUID `db:"tenant_id"`
	ID     uuid.UUID `db:"id"`
	Bucket string    `db:"bucket"`
	Prefix string    `db:"prefix"`
}

// look lets each library check its objects; a failure in one does not affect the others.
func (i *Ingest) look(ctx context.Context, objects []Object) map[Object]error {
	libraries, err := i.libraries(ctx, objects)
	if err != nil {
		return all(objects, err)
	}
	failed := map[Object]error{}
	for _, l := range libraries {
		var mine []Object
		var keys []string
		for _, o := range objects {
			if o.Bucket == l.Bucket && strings.HasPrefix(o.Key, l.Prefix) {
				mine, keys = append(mine, o), append(keys, o.Key)
			}
		}
		if err := i.Scanner.Look(db.In(ctx, db.Tenant(l.Tenant)), l.Tenant, l.ID, keys); err != nil {
			maps.Copy(failed, all(mine, fmt.Errorf("library %s: %w", l.ID, err)))
		}
	}
	return failed
}

// libraries finds the libraries that contain the objects, across all active tenants, with one query. A library's prefix
// ends with a folder, so it queries every folder on the way to each key.
func (i *Ingest) libraries(ctx context.Context, objects []Object) ([]library, error) {
	var buckets, prefixes []string
	asked := map[Object]bool{}
	ask := func(at Object) {
		if !asked[at] {
			asked[at] = true
			buckets, prefixes = append(buckets, at.Bucket), append(prefixes, at.Key)
		}
	}
	for _, o := range objects {
		ask(Object{o.Bucket, ""})
		for n, c := range o.Key {
			if c == '/' {
				ask(Object{o.Bucket, o.Key[:n+1]})
			}
		}
	}
	rows, _ := i.System.Pool().Query(ctx, `select l.tenant_id, l.id, l.bucket, l.prefix
		from (select distinct * from unnest($1::text[], $2::text[]) as u(bucket, prefix)) u
		join library l on l.bucket = u.bucket and l.prefix = u.prefix
		join tenant t on t.id = l.tenant_id and t.status = 'active'
		where l.is_active order by l.tenant_id, l.id`, buckets, prefixes)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[library]) // also returns the error of Query
	if err != nil {
		return nil, fmt.Errorf("find the libraries of %d objects: %w", len(objects), err)
	}
	return out, nil
}
