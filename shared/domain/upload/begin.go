package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// place is the library of an upload, with the usage and limits of the tenant.
type place struct {
	Path     string   `db:"path"`
	Active   bool     `db:"is_active"`
	Bucket   string   `db:"bucket"`
	Prefix   string   `db:"prefix"`
	Formats  []string `db:"allowed_formats"`
	Excluded string   `db:"excluded"`
	MaxBooks *int64   `db:"max_books"`
	Books    int64    `db:"books"`
	Open     int64    `db:"open"`
}

func (u *Uploader) begin(ctx context.Context, in *BeginInput) (*Begun, error) {
	paths := make([]string, len(in.Body.Files))
	for i, f := range in.Body.Files {
		if paths[i] = f.Path; checkPath(f.Path) != "" { // rejected below
			paths[i] = ""
		}
	}
	var b pgx.Batch
	var at *place
	var exist []string
	db.One(&b, &at, `select l.path, l.is_active, l.bucket, l.prefix, l.allowed_formats, coalesce(l.excluded_patterns, '') as excluded, t.max_books,
		(select coalesce(sum(books), 0)::bigint from library_count where tenant_id = app.tenant()) as books,
		(select count(*) from upload where tenant_id = app.tenant() and completed_at is null and expires_at > now()) as open
		from library l join tenant t on t.id = l.tenant_id where l.tenant_id = app.tenant() and l.id = $1`, in.ID)
	db.Values(&b, &exist, "select key from book where tenant_id = app.tenant() and library_id = $1 and key = any($2) and deleted_at is null", in.ID, paths)
	if err := u.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if at == nil {
		return nil, fault.Missing("Library")
	}
	if err := u.open(at); err != nil {
		return nil, err
	}
	files, err := u.checkAll(at, in.Body.Files)
	if err != nil {
		return nil, err
	}
	if err := at.room(files, exist, in.Body.Overwrite); err != nil {
		return nil, err
	}
	return u.addresses(ctx, in, at, files)
}

// list serves clients that have lost the ids: to continue an upload, or to make room for others.
func (u *Uploader) list(ctx context.Context, in *ListInput) (*httpapi.Page[Open], error) {
	const open = " from upload where tenant_id = app.tenant() and library_id = $1 and completed_at is null and expires_at > now()"
	var b pgx.Batch
	var there bool
	var total int64
	var out []Open
	db.Value(&b, &there, "select true from library where tenant_id = app.tenant() and id = $1", in.ID)
	db.Value(&b, &total, "select count(*)"+open, in.ID)
	db.All(&b, &out, "select id, key, size, created_at, expires_at"+open+" order by id limit $2 offset $3", in.ID, in.Limit(), in.Offset())
	if err := u.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !there {
		return nil, fault.Missing("Library")
	}
	return httpapi.NewPage(ctx, in.Paging, out, total), nil
}

// open returns why the library accepts no uploads at all, or nil.
func (u *Uploader) open(at *place) error {
	if u.Config.MaxBytes == 0 {
		return fault.New(fault.Conflict, "This server accepts no uploads; put the files into %s and scan the library", at.Path)
	}
	if !at.Active { // notifications for it are ignored
		return inactive()
	}
	return nil
}

func inactive() error {
	return fault.New(fault.Conflict, "The library is not active; set isActive to true first")
}

func (u *Uploader) checkAll(at *place, files []File) ([]checked, error) {
	selected, err := library.Selection(at.Formats, at.Excluded)
	if err != nil {
		return nil, fault.Wrap(err, fault.Conflict, "The library's excludedPatterns are not valid: %v", err)
	}
	sidecar, err := library.Sidecars(at.Excluded, true) // a library that does not read package documents may do so later
	if err != nil {
		return nil, err
	}
	var bad []fault.Field
	out := make([]checked, len(files))
	twice := map[string]int{}
	begun, addresses := 0, 0
	for i, f := range files {
		name := fmt.Sprintf("files[%d]", i)
		c, member, reason := f.check(u.Config, at.Prefix, selected, sidecar)
		if reason != "" {
			bad = append(bad, fault.Field{Field: name + "." + member, Message: reason})
			continue
		}
		if first, ok := twice[f.Path]; ok {
			bad = append(bad, fault.Field{Field: name + ".path", Message: fmt.Sprintf("is the same as that of files[%d]", first)})
		}
		twice[f.Path], out[i] = i, c
		addresses++
		if c.size > u.Config.SingleBytes {
			begun++
			addresses += int((c.size+partSize(c.size)-1)/partSize(c.size)) - 1
		}
	}
	if begun > maxBegun || addresses > maxParts {
		bad = append(bad, fault.Field{Field: "files", Message: fmt.Sprintf(
			"need %d addresses for parts; the limits are %d addresses and %d multipart uploads: send several requests",
			addresses, maxParts, maxBegun)})
	}
	if at.Open+int64(begun) > maxOpen {
		return nil, tooMany(at.Open)
	}
	return out, fault.InvalidFields(bad)
}

func tooMany(open int64) error {
	return fault.New(fault.Conflict, "%d multipart uploads are open; the limit is %d: complete or abort some", open, maxOpen)
}

// room rejects replacing existing files unless overwrite is set, and more books than the tenant's limit.
func (at *place) room(files []checked, exist []string, overwrite bool) error {
	var taken []fault.Field
	var fresh int64
	for i, f := range files {
		switch {
		case slices.Contains(exist, f.path) && !overwrite:
			taken = append(taken, fault.Field{Field: fmt.Sprintf("files[%d].path", i), Message: "already exists; set overwrite to replace it"})
		case f.book && !slices.Contains(exist, f.path):
			fresh++
		}
	}
	if len(taken) > 0 {
		return &fault.Error{Code: fault.Conflict, Message: taken[0].Field + ": " + taken[0].Message, Fields: taken}
	}
	if at.MaxBooks != nil && fresh > 0 && at.Books+fresh > *at.MaxBooks {
		return fault.New(fault.Conflict, "The limit of this library server is %d books, and it has %d; %d more do not fit. Delete some, or ask its operator",
			*at.MaxBooks, at.Books, fresh)
	}
	return nil
}

// addresses starts multipart uploads and signs addresses. If anything fails, the started uploads are aborted.
func (u *Uploader) addresses(ctx context.Context, in *BeginInput, at *place, files []checked) (out *Begun, err error) {
	var parted []*row
	rows := make([]*row, len(files))
	for i, f := range files {
		rows[i] = &row{ID: uuid.Must(uuid.NewV7()), LibraryID: in.ID, Bucket: at.Bucket, Prefix: at.Prefix, Key: f.path, Size: f.size, Overwrite: in.Body.Overwrite}
		if f.size > u.Config.SingleBytes {
			rows[i].PartSize = partSize(f.size)
			parted = append(parted, rows[i])
		}
	}
	defer func() {
		if err != nil {
			u.undo(context.WithoutCancel(ctx), parted)
		}
	}()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, r := range rows {
		if r.PartSize > 0 {
			g.Go(func() (err error) {
				r.StoreID, err = u.Store.BeginParts(gctx, r.Bucket, r.Prefix+r.Key, files[i].mediaType)
				return refused(err)
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out = &Begun{Files: make([]Address, len(files))}
	for i, r := range rows {
		if r.PartSize > 0 {
			out.Files[i], err = u.sign(ctx, r, nil)
		} else {
			out.Files[i], err = u.whole(ctx, r, files[i].mediaType)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, u.keep(ctx, parted) // last: stored uploads are listed to clients
}

// whole returns the address for a single PUT. The store refuses to replace an object that was created meanwhile.
func (u *Uploader) whole(ctx context.Context, r *row, mediaType string) (Address, error) {
	a := Address{Path: r.Key, Method: http.MethodPut, Headers: map[string]string{"Content-Type": mediaType}, ExpiresAt: u.expiry()}
	header := http.Header{"Content-Type": {mediaType}}
	if !r.Overwrite {
		a.Headers["If-None-Match"] = "*"
		header.Set("If-None-Match", "*")
	}
	url, err := u.Store.Presign(ctx, blob.PutRequest{Bucket: r.Bucket, Key: r.Prefix + r.Key, Size: r.Size, Header: header}, u.Config.Life)
	a.URL = &url
	return a, err
}

func (u *Uploader) expiry() time.Time {
	return time.Now().UTC().Truncate(time.Second).Add(u.Config.Life)
}

// refused says that the store does not let Longbox upload.
func refused(err error) error {
	if errors.Is(err, blob.ErrDenied) {
		return fault.Wrap(err, fault.Conflict, "The store refuses uploads to this library: its folder is read-only")
	}
	if errors.Is(err, blob.ErrBusy) {
		return later(err, "The store is busy with this file for another request; try again shortly")
	}
	if blob.Unreachable(err) {
		return later(err, "The store does not answer; try again shortly")
	}
	return err
}

func later(err error, message string) error {
	return fault.Wrap(err, fault.Unavailable, "%s", message).After(retryAfter)
}
