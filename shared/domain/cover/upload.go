package cover

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Picture is a cover that people uploaded or a plugin provided.
type Picture struct {
	ID         uuid.UUID `json:"id" db:"id"`
	Source     string    `json:"source" db:"source" example:"custom" doc:"custom for a cover that users uploaded, plugin: followed by its name for a cover that a plugin provided"`
	IsSelected bool      `json:"isSelected" db:"selected" doc:"Whether the cover is shown"`
	Path       string    `json:"path" db:"-" doc:"Path of the original picture"`
	Size       int64     `json:"size" db:"size" doc:"Size in bytes"`
	Width      *int32    `json:"width" db:"width" doc:"Width in pixels; null if the picture does not specify it"`
	Height     *int32    `json:"height" db:"height" doc:"Height in pixels; null if the picture does not specify it"`
	CreatedAt  time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt  time.Time `json:"updatedAt" db:"updated_at" doc:"Time of the last upload of this picture"`
}

// OfSeries is an uploaded cover of a series.
type OfSeries struct {
	SeriesID uuid.UUID `json:"seriesId"`
	Picture
}

// OfBook is an uploaded cover of a book.
type OfBook struct {
	BookID uuid.UUID `json:"bookId"`
	Picture
}

// PictureInput names an uploaded cover of a series or a book.
type PictureInput struct {
	httpapi.IDInput
	CoverID uuid.UUID `path:"coverId" format:"uuid"`
}

// UploadInput is a form with a picture.
type UploadInput struct {
	httpapi.IDInput
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"multipart/form-data"`
}

// operation describes one operation on the covers of an owner.
func (o covered) operation(method, path, id, summary, permission string) httpapi.Op {
	g := httpapi.Group{Path: "/api/v1/" + o.Path + "/{id}", Tag: strings.ToUpper(o.Path[:1]) + o.Path[1:]}
	return g.Op(method, path, id, summary, permission)
}

// ids are the ids of the operations on the covers of an owner.
type ids struct{ upload, list, choose, remove, reset, image string }

// uploads registers the operations on uploaded covers of an owner; T is the type of one in responses.
func uploads[T any](a *httpapi.API, d *db.DB, publish events.Publish, o covered, ids ids, as func(*row) T) {
	tell := func(ctx context.Context, id uuid.UUID, c *changed) {
		publish(ctx, httpapi.TenantOf(ctx).ID, Told(events.EntityType(o.Table), id, c.library, c.showing)...)
	}
	show := func(r *row) T {
		r.Path = "/api/v1/" + o.Path + "/" + r.OwnerID.String() + "/covers/" + r.ID.String() + "/image"
		return as(r)
	}
	one := func(ctx context.Context, r *row, c *changed, err error) (*T, error) {
		if err != nil {
			return nil, err
		}
		tell(ctx, r.OwnerID, c)
		return new(show(r)), nil
	}
	gone := func(ctx context.Context, id uuid.UUID, c *changed, err error) (*httpapi.None, error) {
		if err == nil {
			tell(ctx, id, c)
		}
		return nil, err
	}
	upload := o.operation("POST", "/cover", ids.upload, "Upload a picture (form field file) and select it as the cover of a "+o.Table, o.Writing)
	upload.Status, upload.File = 201, "file"
	httpapi.Register(a, upload,
		func(ctx context.Context, in *UploadInput) (*T, error) {
			picture, err := picture(in.ContentType, in.RawBody)
			if err != nil {
				return nil, err
			}
			r, c, err := o.add(ctx, d, in.ID, picture)
			return one(ctx, r, c, err)
		})
	httpapi.Register(a, o.operation("GET", "/covers", ids.list, "List the covers of a "+o.Table+" that users uploaded or plugins gave, latest first", o.Reading),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			httpapi.Paging
		}) (*httpapi.Page[T], error) {
			rows, err := o.list(ctx, d, in.ID)
			if err != nil {
				return nil, err
			}
			all := make([]T, len(rows))
			for i := range rows {
				all[i] = show(&rows[i])
			}
			return httpapi.All(ctx, in.Paging, all), nil
		})
	httpapi.Register(a, o.operation("PUT", "/covers/{coverId}/select", ids.choose, "Select an uploaded picture as the cover of a "+o.Table, o.Writing),
		func(ctx context.Context, in *PictureInput) (*T, error) {
			r, c, err := o.choose(ctx, d, in.ID, in.CoverID)
			return one(ctx, r, c, err)
		})
	httpapi.Register(a, o.operation("DELETE", "/covers/{coverId}", ids.remove,
		"Delete an uploaded cover; if it is shown, the latest other one or "+o.fallback+" replaces it", o.Writing),
		func(ctx context.Context, in *PictureInput) (*httpapi.None, error) {
			c, err := o.remove(ctx, d, in.ID, in.CoverID)
			return gone(ctx, in.ID, c, err)
		})
	httpapi.Register(a, o.operation("DELETE", "/covers/selected", ids.reset, "Reset a "+o.Table+" to "+o.fallback, o.Writing),
		func(ctx context.Context, in *httpapi.IDInput) (*httpapi.None, error) {
			c, err := o.reset(ctx, d, in.ID)
			return gone(ctx, in.ID, c, err)
		})
	image := o.operation("GET", "/covers/{coverId}/image", ids.image, "Get the original image of an uploaded cover", o.Reading)
	image.Cookie, image.Media, image.Also = true, "image/*", []int{http.StatusNotModified}
	a.Handle(image, func(w http.ResponseWriter, r *http.Request) error { return o.write(w, r, d) })
}

// write sends a picture as it was uploaded; it never changes.
func (o covered) write(w http.ResponseWriter, r *http.Request, d *db.DB) error {
	owner, err := httpapi.PathID(r)
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
	}](r.Context(), d, o.sql("select c.type, case when not $3 then c.image end as image"+uploaded+" and c.id = $2"), owner, id, have)
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
