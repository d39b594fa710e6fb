package orphan

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// How long a request may count, and wait in addition for a store that does not respond; and how many files it names.
const (
	statsWithin = 10 * time.Second
	hangFor     = 10 * time.Second
	maxFiles    = 1000
)

// Stats counts the orphans of a tenant.
type Stats struct {
	OrphanedCovers     int64  `json:"orphanedCovers"`
	OrphanedThumbnails int64  `json:"orphanedThumbnails" doc:"Number of smaller page images and page packs"`
	TotalSizeBytes     int64  `json:"totalSizeBytes"`
	Files              []File `json:"files" nullable:"true" maxItems:"1000" doc:"First 1000 files; null unless requested"`
	Complete           bool   `json:"complete" doc:"False if there was no time to check everything; there may be more orphans"`
}

// File is an orphan.
type File struct {
	FileType  string     `json:"fileType" enum:"cover,page_pack,rendition"`
	Path      string     `json:"path" doc:"Name of the object in the media bucket"`
	SizeBytes int64      `json:"sizeBytes"`
	EntityID  *uuid.UUID `json:"entityId" format:"uuid" doc:"Book or series that the file was made from; null if the file's name does not tell"`
}

// stats counts the orphans, after a check of the caller's permission.
func (f *Finder) stats(ctx context.Context, files bool) (*Stats, error) {
	if err := f.Database.Enter(ctx); err != nil { // permission first: what follows acts as the tenant
		return nil, err
	}
	tenant, within := httpapi.TenantOf(ctx).ID, cmp.Or(f.within, statsWithin)
	until := time.Now().Add(within)
	ctx, cancel := context.WithTimeout(db.In(ctx, db.Tenant(tenant)), within+hangFor)
	defer cancel()
	out := &Stats{Complete: true}
	if files {
		out.Files = []File{}
	}
	err := f.walk(ctx, tenant, place{}, func(p found) (bool, error) {
		for _, o := range p.orphans {
			if p.kind.name == coverFile {
				out.OrphanedCovers++
			} else {
				out.OrphanedThumbnails++
			}
			out.TotalSizeBytes += o.Size
			if files && len(out.Files) < maxFiles {
				out.Files = append(out.Files, p.kind.file(tenant, o))
			}
		}
		out.Complete = time.Now().Before(until)
		return out.Complete, nil
	})
	if err != nil && (unanswered(err) || ctx.Err() != nil) {
		return nil, away(err)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// unanswered reports whether the media bucket did not answer. Errors of the database say so themselves.
func unanswered(err error) bool {
	return blob.Unreachable(err) && !errors.As(err, new(*fault.Error))
}

func away(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The media bucket does not answer; try again later").After(10 * time.Second)
}

func (k *kind) file(tenant uuid.UUID, o blob.Object) File {
	out := File{FileType: k.name, Path: o.Key, SizeBytes: o.Size}
	if id, ok := k.owner(tenant, o.Key); ok {
		out.EntityID = &id
	}
	return out
}
