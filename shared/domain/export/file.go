package export

import (
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

// FileRoutes adds the operation that gives out the files: those of more than most bytes, where that is not 0, in ranges
// only.
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

// serve answers with the file, or one range of it (RFC 9110 14), under the conditions of the request.
func (f *file) serve(w http.ResponseWriter, r *http.Request, id uuid.UUID, media *blob.Store, bucket string) error {
	h := w.Header()
	h.Set("ETag", `"`+id.String()+`"`) // it never changes
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Type", mediaTypes[f.Format])
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="longbox-%s-%s.%s"`, names[f.ExportType], f.Completed.Format("2006-01-02"), f.Format))
	src := &object{size: *f.Size}
	if r.Method == http.MethodGet {
		var n int64
		src.from, n = f.part(r, h)
		body, err := media.Range(r.Context(), bucket, blob.Object{Key: *f.Object, Size: *f.Size}, src.from, n)
		switch { // before the header is written, so that a failure has its own status
		case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrChanged), errors.Is(err, blob.ErrRange):
			return fault.Wrap(err, fault.NotFound, "The file of the export is gone; ask for another")
		case blob.Unreachable(err):
			return fault.Wrap(err, fault.Unavailable, "The store of the file is not reachable at the moment; try again shortly")
		case err != nil:
			return err
		}
		defer body.Close()
		src.body = body
	}
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

// part is what http.ServeContent will send of the file: n bytes; none where the answer has no body. Several ranges at
// once are not answered: then it is the whole file.
func (f *file) part(r *http.Request, h http.Header) (from, n int64) {
	head := r.Clone(r.Context())
	head.Method = http.MethodHead
	ask := func() *probe {
		p := &probe{header: h.Clone()}
		http.ServeContent(p, head, "", *f.Completed, &object{size: *f.Size})
		return p
	}
	p := ask()
	if p.status == http.StatusPartialContent {
		var last int64
		if _, err := fmt.Sscanf(p.header.Get("Content-Range"), "bytes %d-%d/", &from, &last); err == nil {
			return from, last - from + 1
		}
		r.Header.Del("Range")
		head.Header.Del("Range")
		p = ask()
	}
	if p.status == http.StatusOK {
		return 0, *f.Size
	}
	return 0, 0
}

// probe takes the header of an answer that nobody gets.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// object lets http.ServeContent read exactly the part of a file that it is about to send.
type object struct {
	size int64
	from int64
	body io.Reader // from there
	at   int64     // where ServeContent wants to begin
	err  error
}

// Seek only notes where reading begins: ServeContent asks for the size and then for the start of the part.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		o.at = offset
	case io.SeekEnd:
		o.at = o.size + offset
	default:
		return 0, errors.New("seek from the current position is not supported")
	}
	return o.at, nil
}

func (o *object) Read(p []byte) (int, error) {
	if o.body == nil || o.at != o.from {
		o.err = errors.New("the part was not opened")
		return 0, o.err
	}
	n, err := o.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		o.err = err
	}
	return n, err
}
