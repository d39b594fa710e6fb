package orphan

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Finder goes through a tenant's objects in the media bucket.
type Finder struct {
	Database *db.DB
	Media    *blob.Store
	Bucket   string

	now    func() time.Time // nil: time.Now
	within time.Duration    // time limit of the statistics; zero: statsWithin
}

// place is where a walk continues: the kind of objects, and the last key.
type place struct {
	Kind  int    `json:"kind"`
	After string `json:"after"`
}

// The names of the kinds of objects.
const (
	coverFile     = "cover"
	packFile      = "page_pack"
	renditionFile = "rendition"
)

// kind is a kind of objects.
type kind struct {
	name string
	cover.Swept
	owner func(tenant uuid.UUID, key string) (uuid.UUID, bool) // the book or series, if the key contains it
}

// Packs are the page packs.
var Packs = cover.Swept{Folder: packs, Unnamed: unnamedPacks}

var kinds = []kind{
	{coverFile, cover.Covers, cover.OwnerOf},
	{packFile, Packs, func(uuid.UUID, string) (uuid.UUID, bool) { return uuid.Nil, false }},
	{renditionFile, cover.Swept{Folder: pages, Unnamed: unnamedPages}, pageOwner},
}

// found is one page of a listing.
type found struct {
	kind    *kind
	seen    int           // objects in it
	orphans []blob.Object // the unreferenced ones
	next    place         // where to continue
}

// walk goes through a tenant's objects from a place on, until each returns false. ctx must be scoped to the tenant.
func (f *Finder) walk(ctx context.Context, tenant uuid.UUID, at place, each func(found) (more bool, err error)) error {
	now := time.Now
	if f.now != nil {
		now = f.now
	}
	for ; at.Kind < len(kinds); at = (place{Kind: at.Kind + 1}) {
		k := &kinds[at.Kind]
		for listed, err := range f.Media.List(ctx, f.Bucket, k.Folder(tenant), at.After) {
			if err != nil {
				return err
			}
			if len(listed) == 0 {
				continue
			}
			next := place{at.Kind, listed[len(listed)-1].Key}
			orphans, err := k.Unnamed(ctx, f.Database, tenant, listed, now().Add(-cover.Youngest))
			if err != nil {
				return err
			}
			if more, err := each(found{k, len(listed), orphans, next}); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

func packs(tenant uuid.UUID) string { return tenant.String() + "/pack/" }

func pages(tenant uuid.UUID) string { return blob.Expiring + tenant.String() + "/" }

// old returns the objects with valid keys that were stored before a time.
func old(listed []blob.Object, before time.Time, written func(key string) bool) (out []blob.Object) {
	for _, o := range listed {
		if !o.Modified.IsZero() && o.Modified.Before(before) && written(o.Key) {
			out = append(out, o)
		}
	}
	return out
}

// unnamedPacks returns the page packs without a row. A pack whose book is gone has a row until pack.Expirer
// deletes both.
func unnamedPacks(ctx context.Context, d *db.DB, tenant uuid.UUID, listed []blob.Object, before time.Time) ([]blob.Object, error) {
	candidates := old(listed, before, func(key string) bool {
		first, name, _ := strings.Cut(strings.TrimPrefix(key, packs(tenant)), "/")
		return len(first) == 2 && len(name) == 64 && strings.HasPrefix(name, first)
	})
	if len(candidates) == 0 {
		return nil, nil
	}
	keys := make([]string, len(candidates))
	for i, o := range candidates {
		keys[i] = o.Key
	}
	named, err := db.ListValues[string](ctx, d, "select key from page_pack where tenant_id = app.tenant() and key = any($1)", keys)
	if err != nil {
		return nil, err
	}
	is := make(map[string]bool, len(named))
	for _, key := range named {
		is[key] = true
	}
	return slices.DeleteFunc(candidates, func(o blob.Object) bool { return is[o.Key] }), nil
}

// pageOwner returns the book of a page rendition: page/<tenant>/<book>/<mac>/<page>/<form>.
func pageOwner(tenant uuid.UUID, key string) (uuid.UUID, bool) {
	part := strings.Split(strings.TrimPrefix(key, pages(tenant)), "/")
	if len(part) != 4 {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(part[0])
	return id, err == nil && id.String() == part[0]
}

// unnamedPages returns the page renditions of content that no book has.
func unnamedPages(ctx context.Context, d *db.DB, tenant uuid.UUID, listed []blob.Object, before time.Time) ([]blob.Object, error) {
	candidates := old(listed, before, func(key string) bool { _, ok := pageOwner(tenant, key); return ok })
	if len(candidates) == 0 {
		return nil, nil
	}
	books := make([]uuid.UUID, len(candidates))
	for i, o := range candidates {
		books[i], _ = pageOwner(tenant, o.Key)
	}
	type row struct {
		Secret      []byte     `db:"secret"`
		ID          *uuid.UUID `db:"id"`
		Fingerprint *string    `db:"fingerprint"`
	}
	rows, err := db.List[row](ctx, d, `select t.secret, b.id, b.fingerprint from tenant t
		left join book b on b.tenant_id = t.id and b.id = any($1) and b.fingerprint <> '' where t.id = app.tenant()`, slices.Compact(slices.Clone(books)))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 { // no row at all, not even the tenant's, says nothing about its pages
		return nil, fault.Missing("Tenant")
	}
	folder := make(map[uuid.UUID]string, len(rows))
	for _, r := range rows {
		if r.ID != nil {
			folder[*r.ID] = cover.PagesFolder(tenant, *r.ID, r.Secret, *r.Fingerprint) + "/"
		}
	}
	var out []blob.Object
	for i, o := range candidates {
		if in := folder[books[i]]; in == "" || !strings.HasPrefix(o.Key, in) {
			out = append(out, o)
		}
	}
	return out, nil
}
