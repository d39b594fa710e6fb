package export

import (
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// FileRoutes registers the download of files. Files of more than most bytes, if that is not 0, are sent in ranges only.
func FileRoutes(a *httpapi.API, d *db.DB, media *blob.Store, bucket string, most int64) {
	get := op("GET", "/{id}/download", "downloadExport", "Download the file of one of the caller's exports, or a range of it", auth.SeriesRead)
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
		return f.serve(w, r, id, media, bucket, most)
	})
}

func (f *file) serve(w http.ResponseWriter, r *http.Request, id uuid.UUID, media *blob.Store, bucket string, most int64) error {
	h := w.Header()
	h.Set("ETag", `"`+id.String()+`"`) // it never changes
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Type", mediaTypes[f.Format])
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="longbox-%s-%s.%s"`, names[f.ExportType], f.Completed.Format("2006-01-02"), f.Format))
	return httpapi.ServeFile(w, r, *f.Size, *f.Completed, func(from, n int64) (io.ReadCloser, error) {
		if most > 0 && n > most {
			return nil, fault.New(fault.TooLarge, "The response would have %d bytes; the limit is %d: fetch the file in ranges", n, most)
		}
		body, err := media.Range(r.Context(), bucket, blob.Object{Key: *f.Object, Size: *f.Size}, from, n)
		switch {
		case blob.Lost(err):
			return nil, fault.Wrap(err, fault.NotFound, "The file of the export is gone; create another export")
		case blob.Unreachable(err):
			return nil, fault.Wrap(err, fault.Unavailable, "The storage is not reachable at the moment; try again shortly")
		}
		return body, err
	})
}

// names are the file names by export type.
var names = map[string]string{ofSeries: "series", ofBooks: "books", ofBoth: "library"}
