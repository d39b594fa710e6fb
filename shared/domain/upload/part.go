package upload

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// row is a multipart upload.
type row struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
	Bucket    string    `db:"bucket"`
	Prefix    string    `db:"prefix"`
	Key       string    `db:"key"`
	Size      int64     `db:"size"`
	PartSize  int64     `db:"part_size"`
	Overwrite bool      `db:"overwrite"`
	StoreID   string    `db:"store_id"`
	Completed bool      `db:"completed"`
	Begun     time.Time `db:"created_at"`
	Held      bool      `db:"held"` // the tenant still has the place
}

// keep stores the multipart uploads of one request: all, or none if they would exceed the limit. Concurrent requests
// are serialized, so that they cannot exceed it together.
func (u *Uploader) keep(ctx context.Context, rows []*row) error {
	if len(rows) == 0 {
		return nil
	}
	var ids []uuid.UUID
	var keys, storeIDs []string
	var sizes, partSizes []int64
	for _, r := range rows {
		ids, keys, storeIDs = append(ids, r.ID), append(keys, r.Key), append(storeIDs, r.StoreID)
		sizes, partSizes = append(sizes, r.Size), append(partSizes, r.PartSize)
	}
	var b pgx.Batch
	var kept int64
	var active bool
	b.Queue("select pg_advisory_xact_lock(hashtextextended('longbox uploads ' || app.tenant(), 0))")
	db.Value(&b, &active, "select is_active from library where tenant_id = app.tenant() and id = $1 for share", rows[0].LibraryID) // nobody deletes it now
	db.Affected(&b, &kept, `insert into upload (tenant_id, id, library_id, account_id, key, size, part_size, overwrite, store_id, expires_at, bucket, prefix)
		select app.tenant(), u.id, $1, app.account(), u.key, u.size, u.part_size, $2, u.store_id, now() + $3, $4, $5
		from unnest($6::uuid[], $7::text[], $8::bigint[], $9::bigint[], $10::text[]) as u(id, key, size, part_size, store_id)
		where (select count(*) from upload where tenant_id = app.tenant() and completed_at is null and expires_at > now()) + cardinality($6::uuid[]) <= $11
		  and exists (select from library where tenant_id = app.tenant() and id = $1 and is_active)`,
		rows[0].LibraryID, rows[0].Overwrite, openFor, rows[0].Bucket, rows[0].Prefix, ids, keys, sizes, partSizes, storeIDs, maxOpen)
	if err := u.Database.Run(ctx, &b); err != nil {
		return err
	}
	if !active {
		return inactive()
	}
	if kept == 0 {
		return tooMany(maxOpen)
	}
	return nil
}

// undo aborts the uploads of a failed request. If that fails, the bucket's lifecycle rule deletes them.
func (u *Uploader) undo(ctx context.Context, rows []*row) {
	ctx, cancel := context.WithTimeout(ctx, undoWithin)
	defer cancel()
	var begun []left
	for _, r := range rows {
		if r.StoreID != "" {
			begun = append(begun, left{Bucket: r.Bucket, Key: r.Prefix + r.Key, StoreID: r.StoreID})
		}
	}
	abortAll(ctx, u.Store, begun)
}

// find returns an unexpired upload; completed includes completed ones.
func (u *Uploader) find(ctx context.Context, in *Input, completed bool) (*row, error) {
	r, err := db.Get[row](ctx, u.Database, `select u.id, u.library_id, coalesce(u.bucket, l.bucket) as bucket,
		  coalesce(u.prefix, l.prefix) as prefix, u.key, u.size, u.part_size, u.overwrite, u.store_id, u.completed_at is not null as completed, u.created_at,
		  coalesce(u.bucket, l.bucket) = l.bucket and coalesce(u.prefix, l.prefix) = l.prefix or exists (select from library_root r
		    where r.tenant_id = u.tenant_id and r.bucket = u.bucket and starts_with(u.prefix, r.prefix)) as held
		from upload u join library l on l.tenant_id = u.tenant_id and l.id = u.library_id
		where u.tenant_id = app.tenant() and u.library_id = $1 and u.id = $2 and u.expires_at > now()
		  and (u.completed_at is null or $3)`, in.ID, in.UploadID, completed)
	if err == nil && r == nil {
		err = fault.New(fault.NotFound, "The upload does not exist: it was completed, aborted, or is older than a day")
	}
	return r, err
}

// usable is find for what writes to the place of the upload: the operator may have taken the place away since, and
// given it to another tenant, if the library has moved.
func (u *Uploader) usable(ctx context.Context, in *Input, completed bool) (*row, error) {
	r, err := u.find(ctx, in, completed)
	if err == nil && !r.Held {
		err = fault.New(fault.NotFound, "The folder of this upload no longer belongs to this library server; abort the upload and start another")
	}
	return r, err
}

// completed keeps the row of the upload until it expires, so that a repeated request gets the same response.
func (u *Uploader) completed(ctx context.Context, r *row) (*Completed, error) {
	_, err := db.Exec(ctx, u.Database, "update upload set completed_at = now() where tenant_id = app.tenant() and id = $1 and completed_at is null", r.ID)
	return &Completed{r.Key, r.Size}, err
}

// part returns the n-th part of the file, from 1.
func (r *row) part(n int) (offset, size int64, ok bool) {
	offset = int64(n-1) * r.PartSize
	return offset, min(r.PartSize, r.Size-offset), n > 0 && offset < r.Size
}

// arrived returns the valid parts in the store, by number.
func (r *row) arrived(parts []blob.Part) map[int]blob.Part {
	out := map[int]blob.Part{}
	for _, p := range parts {
		if _, size, ok := r.part(p.Number); ok && size == p.Size {
			out[p.Number] = p
		}
	}
	return out
}

// sign signs the addresses of the missing parts.
func (u *Uploader) sign(ctx context.Context, r *row, have map[int]blob.Part) (Address, error) {
	a := Address{Path: r.Key, Method: http.MethodPut, Headers: map[string]string{}, UploadID: &r.ID, PartSize: &r.PartSize, Parts: []PartAddress{},
		ExpiresAt: u.expiry()}
	for n := 1; ; n++ {
		offset, size, ok := r.part(n)
		if !ok {
			return a, nil
		}
		if _, there := have[n]; there {
			continue
		}
		address, err := u.Store.Presign(ctx, blob.PutRequest{Bucket: r.Bucket, Key: r.Prefix + r.Key, Size: size, Part: n, ID: r.StoreID}, u.Config.Life)
		if err != nil {
			return a, err
		}
		a.Parts = append(a.Parts, PartAddress{Number: n, Offset: offset, Size: size, URL: address})
	}
}

func (u *Uploader) resume(ctx context.Context, in *Input) (*Address, error) {
	r, err := u.usable(ctx, in, false)
	if err != nil {
		return nil, err
	}
	parts, err := u.Store.Parts(ctx, r.Bucket, r.Prefix+r.Key, r.StoreID)
	if err != nil {
		return nil, gone(err)
	}
	a, err := u.sign(ctx, r, r.arrived(parts))
	return &a, err
}

// complete joins the parts once all have arrived. A repeated request gets the same response.
func (u *Uploader) complete(ctx context.Context, in *Input) (*Completed, error) {
	r, err := u.usable(ctx, in, true)
	if err != nil {
		return nil, err
	}
	if r.Completed {
		return &Completed{r.Key, r.Size}, nil
	}
	key := r.Prefix + r.Key
	parts, err := u.Store.Parts(ctx, r.Bucket, key, r.StoreID)
	if err != nil {
		return u.ended(ctx, r, err)
	}
	have := r.arrived(parts)
	var all []blob.Part
	var missing []string
	for n := 1; ; n++ {
		if _, _, ok := r.part(n); !ok {
			break
		}
		if p, ok := have[n]; ok {
			all = append(all, p)
		} else if len(missing) < 20 {
			missing = append(missing, strconv.Itoa(n))
		}
	}
	if len(missing) > 0 {
		return nil, fault.New(fault.Conflict, "These parts are missing or have the wrong size: %s. Send them, then complete the upload again",
			strings.Join(missing, ", "))
	}
	if _, err := u.Store.CompleteParts(ctx, r.Bucket, key, r.StoreID, all, !r.Overwrite); err != nil {
		if errors.Is(err, blob.ErrChanged) {
			// The object may stem from this upload, completed by another request. Then the store no longer knows the
			// upload.
			_, open := u.Store.Parts(ctx, r.Bucket, key, r.StoreID)
			if !errors.Is(open, blob.ErrNotFound) {
				return nil, fault.Wrap(err, fault.Conflict, "%s exists now; abort this upload and start one with overwrite to replace it", r.Key)
			}
			err = open
		}
		return u.ended(ctx, r, err)
	}
	return u.completed(ctx, r)
}

// clocks is the maximum difference between the clocks of store and database.
const clocks = time.Minute

// ended handles a store that refuses to list or join the parts. If the store no longer knows the upload and the file
// exists, it was completed, by another request or by one whose response was lost; otherwise it was aborted.
func (u *Uploader) ended(ctx context.Context, r *row, err error) (*Completed, error) {
	if !errors.Is(err, blob.ErrNotFound) {
		return nil, refused(err)
	}
	objects, lerr := u.Store.Look(ctx, r.Bucket, []string{r.Prefix + r.Key})
	if lerr != nil {
		return nil, refused(lerr)
	}
	// No file, or still the one to be replaced.
	if len(objects) == 0 || objects[0].Size != r.Size || objects[0].Modified.Before(r.Begun.Add(-clocks)) {
		return nil, gone(err)
	}
	return u.completed(ctx, r)
}

func (u *Uploader) abort(ctx context.Context, in *Input) error {
	r, err := u.find(ctx, in, false)
	if err != nil {
		return err
	}
	if err := u.Store.AbortParts(ctx, r.Bucket, r.Prefix+r.Key, r.StoreID); err != nil {
		return refused(err)
	}
	_, err = db.Exec(ctx, u.Database, "delete from upload where tenant_id = app.tenant() and id = $1", r.ID)
	return err
}

func gone(err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fault.Wrap(err, fault.NotFound, "The store no longer knows this upload; start another")
	}
	return refused(err)
}
