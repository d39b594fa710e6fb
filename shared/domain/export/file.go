package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// FileRoutes adds the operation that gives out the files: those of more than most bytes, where that is not 0, in ranges only.
func FileRoutes(a *httpapi.API, d *db.DB, media *blob.Store, bucket string, most int64) {
	get := op("GET", "/{id}/download", "downloadExport", "The file of an export of the caller, or a range of it", auth.SeriesRead)
	get.Media = "text/csv, text/markdown, application/json"
	get.Also = []int{http.StatusPartialContent, http.StatusNotModified}
	a.Handle(get, func(w http.ResponseWriter, r *http.Request) error {
		id, err := httpapi.PathID(r)
		if err != nil {
			return err
		}
		f, err := open(r.Context(), d, id)
		if err != nil {
			return err
		}
		if most > 0 && *f.Size > most && r.Header.Get("Range") == "" && r.Method == http.MethodGet {
			return fault.New(fault.TooLarge, "The file has %d bytes, and %d can be sent at once here: fetch it in ranges", *f.Size, most)
		}
		return f.serve(w, r, id, media, bucket)
	})
}

// serve answers with the file, or a range of it (RFC 9110 14).
func (f *file) serve(w http.ResponseWriter, r *http.Request, id uuid.UUID, media *blob.Store, bucket string) error {
	src := &object{ctx: r.Context(), media: media, bucket: bucket, object: blob.Object{Key: *f.Object, Size: *f.Size}}
	defer src.Close()
	if r.Method == http.MethodGet && *f.Size > 0 { // before the header is written, so that a failure has its own status
		switch err := src.look(); {
		case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrChanged):
			return fault.Wrap(err, fault.NotFound, "The file of the export is gone; ask for another")
		case blob.Unreachable(err):
			return fault.Wrap(err, fault.Unavailable, "The store of the file is not reachable at the moment; try again shortly")
		case err != nil:
			return err
		}
	}
	h := w.Header()
	h.Set("ETag", `"`+id.String()+`"`) // it never changes
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Type", mediaTypes[f.Format])
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="longbox-%s-%s.%s"`, names[f.ExportType], f.Completed.Format("2006-01-02"), f.Format))
	http.ServeContent(w, r, "", *f.Completed, src)
	if src.err != nil {
		if r.Context().Err() == nil {
			httpapi.Note(r.Context(), slog.String("stream", src.err.Error()))
		}
		panic(http.ErrAbortHandler) // a short body must not look whole
	}
	return nil
}

// names are what the files are called, by what they are of.
var names = map[string]string{ofSeries: "series", ofBooks: "books", ofBoth: "library"}

// object lets http.ServeContent read a file from wherever it wants to.
type object struct {
	ctx    context.Context
	media  *blob.Store
	bucket string
	object blob.Object
	at     int64
	body   io.ReadCloser // from at; nil: not opened
	err    error
}

// look asks the store for the first byte of the file.
func (o *object) look() error {
	_, err := o.media.ReadRange(o.ctx, o.bucket, o.object, 0, 1)
	return err
}

// Seek goes to another place.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	to := offset
	switch whence {
	case io.SeekStart:
	case io.SeekEnd:
		to = o.object.Size + offset
	default:
		return 0, errors.New("seek from the current position is not supported")
	}
	if to != o.at {
		o.Close()
	}
	o.at = to
	return to, nil
}

func (o *object) Read(p []byte) (n int, err error) {
	if o.at >= o.object.Size {
		return 0, io.EOF
	}
	if o.body == nil {
		if o.body, err = o.media.Range(o.ctx, o.bucket, o.object, o.at, o.object.Size-o.at); err != nil {
			o.err = err
			return 0, err
		}
	}
	n, err = o.body.Read(p)
	o.at += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		o.err = err
	} else if errors.Is(err, io.EOF) && o.at < o.object.Size {
		o.err, err = blob.ErrCut, blob.ErrCut
	}
	return n, err
}

// Close ends the request to the store.
func (o *object) Close() {
	if o.body != nil {
		o.body.Close()
		o.body = nil
	}
}
