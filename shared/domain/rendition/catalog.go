package rendition

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// catalogPages registers the pages that OPDS links to (package catalog). OPDS clients do not report progress, so a page
// request counts as progress. These routes do not accept the session cookie, so that no foreign web page can change
// somebody's progress.
func catalogPages(a *httpapi.API, m *Maker, s *page.Server, d Delivery, op httpapi.Op) {
	op.Tag, op.Cookie, op.StartsAhead = "OPDS 1.2", false, false
	turned := func(ctx context.Context, i *page.Index, n int) {
		reader := *auth.CallerOf(ctx)
		reader.Permission = auth.BooksRead // as for all progress; a caller who may only see pages has none
		err := progress.Fetched(db.In(ctx, &reader), m.Database, i.BookID, n)
		if err != nil && !fault.Is(err, fault.Forbidden) { // the page is sent anyway
			httpapi.Note(ctx, slog.String("progress", err.Error()))
		}
	}
	serve := func(w http.ResponseWriter, r *http.Request, n int, query url.Values) error {
		err := servePage(asked{w}, r, s, d, n, query, turned)
		if err == nil {
			w.Header().Set("Cache-Control", eachTime) // HEAD has written nothing
		}
		return err
	}
	op.Path, op.ID, op.Summary = "/opds/books/{id}/pages/{pageNumber}", "opdsPage", "Get a page image and record it as the caller's progress in the book"
	a.Handle(op, func(w http.ResponseWriter, r *http.Request) error {
		n, err := pageNumber(httpapi.PathParam(r, "pageNumber"))
		if err != nil {
			return err
		}
		return serve(w, r, n, r.URL.Query())
	})
	op.Path, op.ID, op.Summary = "/opds/books/{id}/pages/stream/{pageNumber}", "opdsPageStream", "Get a page image, with pages counted from 0 (OPDS-PSE), and record it as the caller's progress"
	a.Handle(op, func(w http.ResponseWriter, r *http.Request) error {
		n, err := pageNumber(httpapi.PathParam(r, "pageNumber"))
		if err != nil {
			return err
		}
		q := r.URL.Query()
		if width, _ := strconv.Atoi(q.Get("width")); width < 1 { // some clients send {maxWidth} literally, or empty
			q.Del("width")
		}
		return serve(w, r, n+1, q)
	})
}

// asked is a response that the client must revalidate every time, even if it has the page already (304): otherwise
// rereading would go unnoticed.
type asked struct{ http.ResponseWriter }

const eachTime = "private, no-cache"

func (w asked) WriteHeader(status int) {
	w.Header().Set("Cache-Control", eachTime)
	w.ResponseWriter.WriteHeader(status)
}

func (w asked) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// ReadFrom keeps the server's efficient copy.
func (w asked) ReadFrom(r io.Reader) (int64, error) {
	w.WriteHeader(http.StatusOK)
	return io.Copy(w.ResponseWriter, r)
}

func (w asked) Unwrap() http.ResponseWriter { return w.ResponseWriter }
