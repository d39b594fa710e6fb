package series

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// What people can upload at most: covers of a series, and bytes of all series of a tenant.
const (
	mostCovers     = 20
	mostCoverBytes = 1 << 30
)

// Cover is a picture that people have uploaded, or a plugin has named, as the cover of a series.
type Cover struct {
	ID         uuid.UUID `json:"id" db:"id"`
	SeriesID   uuid.UUID `json:"seriesId" db:"series_id"`
	Source     string    `json:"source" db:"source" example:"custom" doc:"custom for one that people have uploaded, plugin: and its name for one that a plugin has named"`
	IsSelected bool      `json:"isSelected" db:"selected" doc:"The series shows it"`
	Path       string    `json:"path" db:"-" doc:"Address of the picture as it was uploaded"`
	Size       int64     `json:"size" db:"size" doc:"Bytes"`
	Width      *int32    `json:"width" db:"width" doc:"Pixels; null where the picture does not say"`
	Height     *int32    `json:"height" db:"height" doc:"Pixels; null where the picture does not say"`
	CreatedAt  time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt  time.Time `json:"updatedAt" db:"updated_at" doc:"When it was uploaded last"`
	LibraryID  uuid.UUID `json:"-" db:"library_id"`
}

// shown fills in what follows from the rest.
func (c *Cover) shown() *Cover {
	c.Path = "/api/v1/series/" + c.SeriesID.String() + "/covers/" + c.ID.String() + "/image"
	return c
}

// CoverInput names an uploaded cover of a series.
type CoverInput struct {
	IDInput
	CoverID uuid.UUID `path:"coverId" format:"uuid"`
}

// UploadInput is a form with a picture.
type UploadInput struct {
	IDInput
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"multipart/form-data"`
}

const (
	coverColumns = "c.id, c.series_id, c.source, s.cover_source is not distinct from 'custom:' || c.id as selected, c.size, c.width, c.height, c.created_at, c.updated_at, s.library_id"
	uploaded     = " from series s join series_cover c on c.tenant_id = s.tenant_id and c.series_id = s.id where s.tenant_id = app.tenant() and s.id = $1"
)

// uploads adds the operations on covers that people upload.
func uploads(a *httpapi.API, d *db.DB, publish task.Publish) {
	tell := func(ctx context.Context, id, library uuid.UUID) {
		publish(ctx, httpapi.TenantOf(ctx).ID, events.CoverUpdated(events.SeriesEntity, id, &library))
	}
	upload := operation("POST", "/{id}/cover", "uploadSeriesCover", "Upload a picture (the member file of a form), and show it as the cover of a series", auth.SeriesWrite)
	upload.Status, upload.File = 201, "file"
	httpapi.Register(a, upload,
		func(ctx context.Context, in *UploadInput) (*Cover, error) {
			picture, err := picture(in.ContentType, in.RawBody)
			if err != nil {
				return nil, err
			}
			c, err := addCover(ctx, d, in.ID, picture)
			if err != nil {
				return nil, err
			}
			tell(ctx, in.ID, c.LibraryID)
			return c, nil
		})
	httpapi.Register(a, operation("GET", "/{id}/covers", "listSeriesCovers", "The covers of a series that people have uploaded, the last first", auth.SeriesRead),
		func(ctx context.Context, in *struct {
			IDInput
			httpapi.Paging
		}) (*httpapi.Page[Cover], error) {
			var b pgx.Batch
			var exists bool
			var all []Cover
			progress.QueueSeriesExists(&b, &exists, in.ID)
			db.All(&b, &all, "select "+coverColumns+uploaded+" order by c.updated_at desc, c.id", in.ID)
			if err := d.Run(ctx, &b); err != nil {
				return nil, err
			}
			if !exists {
				return nil, fault.Missing("Series")
			}
			for i := range all {
				all[i].shown()
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
	httpapi.Register(a, operation("PUT", "/{id}/covers/{coverId}/select", "selectSeriesCover", "Show an uploaded picture as the cover of a series", auth.SeriesWrite),
		func(ctx context.Context, in *CoverInput) (*Cover, error) {
			c, err := selectCover(ctx, d, in.ID, in.CoverID)
			if err != nil {
				return nil, err
			}
			tell(ctx, in.ID, c.LibraryID)
			return c, nil
		})
	httpapi.Register(a, operation("DELETE", "/{id}/covers/{coverId}", "deleteSeriesCover",
		"Delete an uploaded picture; a series that shows it shows the last of the others then, or its default cover", auth.SeriesWrite),
		func(ctx context.Context, in *CoverInput) (*httpapi.None, error) {
			library, err := deleteCover(ctx, d, in.ID, in.CoverID)
			if err == nil {
				tell(ctx, in.ID, library)
			}
			return nil, err
		})
	image := operation("GET", "/{id}/covers/{coverId}/image", "getSeriesCoverImage", "An uploaded picture as it is", auth.SeriesRead)
	image.Cookie, image.Media, image.Also = true, "image/*", []int{http.StatusNotModified}
	a.Handle(image, func(w http.ResponseWriter, r *http.Request) error { return writeCover(w, r, d) })
}

// pictureFile is a picture that was uploaded.
type pictureFile struct {
	data          []byte
	kind          string
	width, height *int32
}

// picture is the one in the member file of a form.
func picture(contentType string, body []byte) (*pictureFile, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return nil, fault.Invalid("file", "must be sent in a form of type multipart/form-data")
	}
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, fault.Invalid("file", "is missing in the form")
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.BadRequest, "The form cannot be read")
		}
		if part.FormName() != "file" {
			continue
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, fault.Wrap(err, fault.BadRequest, "The form cannot be read")
		}
		p := pictureOf(data)
		if p == nil {
			return nil, fault.Invalid("file", "must be a picture, such as a JPEG, PNG or WebP")
		}
		return p, nil
	}
}

// pictureOf is the picture that data are, nil where they are none.
func pictureOf(data []byte) *pictureFile {
	p := &pictureFile{data: data, kind: mediatype.Detect(data[:min(len(data), mediatype.HeadBytes)])}
	w, h, ok := mediatype.Dimensions(data)
	if !mediatype.Servable(p.kind) || !ok && p.kind != mediatype.TIFF { // of TIFF no size is read
		return nil
	}
	if ok {
		width, height := int32(w), int32(h)
		p.width, p.height = &width, &height
	}
	return p
}

// IsPicture tells whether data can be a cover.
func IsPicture(data []byte) bool { return pictureOf(data) != nil }

// QueueCover keeps a picture that a plugin has named, in the place of the one before that the plugin has named, where
// there is room for it: plugins take half of what covers may. kept is 1 then, once the batch has run. It is shown where
// show says so; one that the series shows already stays.
func QueueCover(b *pgx.Batch, kept *int64, series uuid.UUID, data []byte, source string, show bool) {
	p, print := pictureOf(data), fingerprint(data)
	queueCover(b, kept, series, p, print, source, mostCoverBytes/2)
	if show {
		b.Queue(selecting+"c.fingerprint = $2", series, print)
	}
	b.Queue(`delete from series_cover c using series s where c.tenant_id = app.tenant() and c.series_id = $1 and c.source = $2 and c.fingerprint <> $3
		and s.tenant_id = c.tenant_id and s.id = c.series_id and s.cover_source is distinct from 'custom:' || c.id
		and exists (select from series_cover n where n.tenant_id = c.tenant_id and n.series_id = c.series_id and n.fingerprint = $3)`, series, source, print)
}

func fingerprint(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// addCover keeps a picture and shows it; one that was uploaded before is only shown again.
func addCover(ctx context.Context, d *db.DB, series uuid.UUID, p *pictureFile) (*Cover, error) {
	print := fingerprint(p.data)
	var b pgx.Batch
	var exists bool
	var out *Cover
	db.Value(&b, &exists, holdSeries, series)
	queueCover(&b, new(int64), series, p, print, "custom", mostCoverBytes)
	db.One(&b, &out, selecting+"c.fingerprint = $2 returning "+coverColumns, series, print)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	switch {
	case !exists:
		return nil, fault.Missing("Series")
	case out == nil:
		return nil, fault.New(fault.Conflict, "There are %d uploaded covers of the series already, or 1 GiB of all series: delete one first", mostCovers)
	}
	return out.shown(), nil
}

// replaced is SQL: the cover c is in the place of the new one of series $1 and source $10, which is not people's.
const replaced = "(c.series_id = $1 and c.source = $10 and $10 <> 'custom')"

// queueCover keeps a picture of a series that is held; one that is there already stays, as what it was.
func queueCover(b *pgx.Batch, kept *int64, series uuid.UUID, p *pictureFile, print, source string, bytes int64) {
	db.Affected(b, kept, `insert into series_cover (tenant_id, id, series_id, fingerprint, type, image, size, width, height, source)
		select app.tenant(), gen_random_uuid(), s.id, $2, $3, $4, $5::bigint, $6, $7, $10 from series s where s.tenant_id = app.tenant() and s.id = $1
		  and (exists (select from series_cover c where c.tenant_id = app.tenant() and c.series_id = s.id and c.fingerprint = $2)
		    or (select count(*) from series_cover c where c.tenant_id = app.tenant() and c.series_id = s.id and not `+replaced+`) < $8
		      and (select coalesce(sum(c.size), 0) from series_cover c where c.tenant_id = app.tenant() and not `+replaced+`) + $5::bigint <= $9)
		on conflict (tenant_id, series_id, fingerprint) do update set updated_at = now()`,
		series, print, p.kind, p.data, len(p.data), p.width, p.height, mostCovers, bytes, source)
}

// holdSeries makes those who change the covers of a series wait for each other.
const holdSeries = "select true from series where tenant_id = app.tenant() and id = $1 for no key update"

// selecting shows the uploaded cover c of series $1 that meets what follows.
const selecting = `update series s set cover_source = 'custom:' || c.id, updated_at = now() from series_cover c
	where s.tenant_id = app.tenant() and s.id = $1 and c.tenant_id = s.tenant_id and c.series_id = s.id and `

func selectCover(ctx context.Context, d *db.DB, series, id uuid.UUID) (*Cover, error) {
	var b pgx.Batch
	var out *Cover
	b.Queue(holdSeries, series)
	db.One(&b, &out, selecting+"c.id = $2 returning "+coverColumns, series, id)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, fault.Missing("Cover")
	}
	return out.shown(), nil
}

// deleteCover deletes one, and tells the library of the series.
func deleteCover(ctx context.Context, d *db.DB, series, id uuid.UUID) (library uuid.UUID, err error) {
	var b pgx.Batch
	var at *uuid.UUID
	b.Queue(holdSeries, series)
	db.Value(&b, &at, `update series s set updated_at = now(), cover_source = case when s.cover_source = 'custom:' || $2::uuid then (
		  select 'custom:' || c.id from series_cover c where c.tenant_id = s.tenant_id and c.series_id = s.id and c.id <> $2 order by c.updated_at desc, c.id limit 1)
		  else s.cover_source end
		where s.tenant_id = app.tenant() and s.id = $1 and exists (select from series_cover c where c.tenant_id = s.tenant_id and c.series_id = s.id and c.id = $2)
		returning s.library_id`, series, id)
	b.Queue("delete from series_cover where tenant_id = app.tenant() and series_id = $1 and id = $2", series, id)
	if err := d.Run(ctx, &b); err != nil {
		return library, err
	}
	if at == nil {
		return library, fault.Missing("Cover")
	}
	return *at, nil
}

// writeCover answers with a picture as it was uploaded, which never changes.
func writeCover(w http.ResponseWriter, r *http.Request, d *db.DB) error {
	series, err := httpapi.PathID(r)
	if err != nil {
		return err
	}
	id, err := uuid.Parse(httpapi.PathParam(r, "coverId"))
	if err != nil {
		return fault.Invalid("coverId", "must be a UUID")
	}
	tag := `"` + id.String() + `"`
	have := strings.Contains(r.Header.Get("If-None-Match"), tag)
	row, err := db.Get[struct {
		Type  string `db:"type"`
		Image []byte `db:"image"`
	}](r.Context(), d, "select c.type, case when not $3 then c.image end as image"+uploaded+" and c.id = $2", series, id, have)
	if err != nil {
		return err
	}
	if row == nil {
		return fault.Missing("Cover")
	}
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	if have {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", row.Type)
	h.Set("Content-Length", strconv.Itoa(len(row.Image)))
	if r.Method != http.MethodHead {
		_, err = w.Write(row.Image)
	}
	return err
}
