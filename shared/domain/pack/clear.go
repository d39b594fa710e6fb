package pack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/pack/pdfcache"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// clearing is the checkpoint of a clean-up of PDF documents.
type clearing struct {
	pdfcache.Result
	After uuid.UUID `json:"after"` // last book
	Total int64     `json:"total"` // packs to delete at the start
	Seen  int64     `json:"seen"`
	// Key of the last smaller page, of any book, that was looked at; they come after the packs.
	Smaller string `json:"smaller"`
	// The store's error for an object that it did not delete. The others are deleted anyway.
	Refused string `json:"refused"`
}

// packRow is a pack to delete.
type packRow struct {
	Book uuid.UUID `db:"book_id"`
	Key  string    `db:"key"`
	Size int64     `db:"size"`
	Made time.Time `db:"created_at"`
}

// ofPDF joins the packs of PDF documents that are older than the setting's days, or all.
const ofPDF = ` from page_pack p join book b on b.tenant_id = p.tenant_id and b.id = p.book_id
	where p.tenant_id = app.tenant() and b.format = 'pdf' and p.book_id > $1 and ($2 or $3 > 0 and p.created_at < now() - make_interval(days => $3))`

// Clear handles cleanup_pdf_cache tasks: it deletes packs of PDF documents and, if it deletes all, their smaller pages.
// They are made again when somebody reads the books.
func (m *Maker) Clear(ctx context.Context, h task.Held) (any, error) {
	var p pdfcache.Params
	if err := json.Unmarshal(h.Params, &p); err != nil {
		return nil, fmt.Errorf("read parameters of the clean-up: %w", err)
	}
	var at clearing
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	var b pgx.Batch
	var days int64
	setting.Int(&b, setting.PDFCacheDays, &days)
	if err := m.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	for {
		var b pgx.Batch
		var packs []packRow
		if at.Total == 0 {
			db.Value(&b, &at.Total, "select count(*)"+ofPDF, at.After, p.All, days)
		}
		// At most the number of objects of one delete request.
		db.All(&b, &packs, "select p.book_id, p.key, p.size, p.created_at"+ofPDF+" order by p.book_id limit 1000", at.After, p.All, days)
		if err := m.Database.Run(ctx, &b); err != nil {
			return nil, err
		}
		if len(packs) == 0 {
			if p.All {
				if err := m.clearSmaller(ctx, h, &at); err != nil {
					return nil, err
				}
			}
			return at.Result, m.again(ctx, h, at)
		}
		if err := m.clear(ctx, h, packs, &at); err != nil {
			return nil, err
		}
		if task.MustPause(ctx) {
			return nil, task.Paused(at)
		}
	}
}

// again returns the error for objects that the store did not delete, or nil. The retry starts at the first book;
// otherwise it would skip them.
func (m *Maker) again(ctx context.Context, h task.Held, at clearing) error {
	if at.Refused == "" {
		return nil
	}
	var b pgx.Batch
	if err := task.QueueProgress(&b, h, at.Seen, at.Total, clearing{Result: at.Result}); err != nil {
		return err
	}
	if err := m.Database.Run(ctx, &b); err != nil {
		return err
	}
	// Without the object's location: the bucket is the operator's.
	return fault.New(fault.Unavailable, "The store does not delete some pages of PDF documents: %s", at.Refused)
}

// clear deletes some packs, objects first, as in Expire. The row of a pack that was made again meanwhile stays.
func (m *Maker) clear(ctx context.Context, h task.Held, packs []packRow, at *clearing) error {
	objects := make([]blob.Object, len(packs))
	for i, p := range packs {
		objects[i] = blob.Object{Key: p.Key, Size: p.Size}
	}
	kept, err := m.remove(ctx, objects, at)
	if err != nil {
		return err
	}
	var books []uuid.UUID
	var keys []string
	var made []time.Time
	for _, p := range packs {
		if !kept[p.Key] {
			books, keys, made = append(books, p.Book), append(keys, p.Key), append(made, p.Made)
		}
	}
	at.After, at.Seen = packs[len(packs)-1].Book, at.Seen+int64(len(packs))
	at.Total = max(at.Total, at.Seen)
	var b pgx.Batch
	b.Queue(`delete from page_pack k using unnest($1::uuid[], $2::text[], $3::timestamptz[]) s (book_id, key, made)
		where k.tenant_id = app.tenant() and k.book_id = s.book_id and k.key = s.key and k.created_at = s.made`, books, keys, made)
	if err := task.QueueProgress(&b, h, at.Seen, at.Total, at); err != nil {
		return err
	}
	if err := m.Database.Run(ctx, &b); err != nil {
		return err
	}
	m.Publish(ctx, h.Tenant, task.ProgressEvent(h, at.Seen, at.Total))
	return nil
}

// remove deletes objects and counts them. It returns the keys of those that the store keeps.
func (m *Maker) remove(ctx context.Context, objects []blob.Object, at *clearing) (kept map[string]bool, err error) {
	done, err := m.Media.DeleteAll(ctx, m.Bucket, "", objects)
	kept = map[string]bool{}
	if left := new(blob.Undeleted); errors.As(err, &left) {
		at.Refused = cmp.Or(at.Refused, left.Message, "it gives no reason")
		for _, key := range left.Keys {
			kept[key] = true
		}
	} else if err != nil {
		return nil, err
	}
	at.FilesDeleted, at.BytesReclaimed = at.FilesDeleted+done.Objects, at.BytesReclaimed+done.Bytes
	return kept, nil
}

// clearSmaller deletes the smaller pages of PDF documents (package rendition), which were drawn too. Each step is one
// page of the listing of all smaller pages.
func (m *Maker) clearSmaller(ctx context.Context, h task.Held, at *clearing) error {
	below := blob.Expiring + h.Tenant.String() + "/"
	for listed, err := range m.Media.List(ctx, m.Bucket, below, at.Smaller) {
		if err != nil {
			return err
		}
		if len(listed) == 0 {
			continue
		}
		at.Smaller = listed[len(listed)-1].Key
		drawn, err := m.ofDocuments(ctx, below, listed)
		if err != nil {
			return err
		}
		if _, err := m.remove(ctx, drawn, at); err != nil {
			return err
		}
		var b pgx.Batch
		if err := task.QueueProgress(&b, h, at.Seen, at.Total, at); err != nil {
			return err
		}
		if err := m.Database.Run(ctx, &b); err != nil {
			return err
		}
		if task.MustPause(ctx) {
			return task.Paused(*at)
		}
	}
	return nil
}

// ofDocuments returns the smaller pages that belong to PDF documents.
func (m *Maker) ofDocuments(ctx context.Context, below string, listed []blob.Object) ([]blob.Object, error) {
	books := make([]uuid.UUID, len(listed))
	for i, o := range listed {
		id, _, _ := strings.Cut(strings.TrimPrefix(o.Key, below), "/")
		books[i], _ = uuid.Parse(id) // else the zero id, which no book has
	}
	documents, err := db.ListValues[uuid.UUID](ctx, m.Database,
		"select id from book where tenant_id = app.tenant() and id = any($1) and format = 'pdf'", slices.Compact(slices.Clone(books)))
	if err != nil {
		return nil, err
	}
	var drawn []blob.Object
	for i, o := range listed {
		if slices.Contains(documents, books[i]) {
			drawn = append(drawn, o)
		}
	}
	return drawn, nil
}
