package page

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Immutable is the Cache-Control of pages; only the caller's browser may cache them. At the CDN, and with the templates
// of a book's address (package rendition), another content has another address. The address of a page without a version
// stays when the file of its book is replaced: a browser that has the page may show it for up to a year, as the
// interface demands.
const Immutable = "private, max-age=31536000, immutable"

// Original sends the bytes of page n as they are in the book. A deflated page is sent as a gzip stream to clients that
// accept it, so the server does not inflate it.
func (s *Server) Original(w http.ResponseWriter, r *http.Request, i *Index, n int) error {
	return s.original(w, r, i, n, true)
}

// Plain is Original without content encoding, for a cache that keeps one form for all clients.
func (s *Server) Plain(w http.ResponseWriter, r *http.Request, i *Index, n int) error {
	return s.original(w, r, i, n, false)
}

func (s *Server) original(w http.ResponseWriter, r *http.Request, i *Index, n int, negotiate bool) error {
	e, err := i.Entry(n)
	if err != nil {
		return err
	}
	store, bucket, o := s.Content.Store, i.Bucket, i.Object()
	packed, place, isPacked := i.InPack(n)
	if isPacked {
		store, bucket, o, e = s.Media, s.Bucket, packed, place
	}
	h := w.Header()
	gzip, form := false, ""
	if negotiate && e.Method == archive.Deflated {
		h.Add("Vary", "Accept-Encoding")
		if httpapi.AcceptsGzip(r) {
			gzip, form = true, "gz"
		}
	}
	tag := i.Tag(n, form)
	if NotModified(w, r, tag, Immutable) {
		return nil
	}
	if r.Method == http.MethodHead {
		describe(h, tag, i.Types[n-i.First], e, gzip)
		return nil
	}
	if !e.Direct() || e.Heavy() {
		if err := httpapi.Confirmed(r.Context()); err != nil {
			return err
		}
		return s.sendCostly(w, r, i, n, e, tag)
	}
	give, err := s.turn(r.Context(), store)
	if err != nil {
		return s.explain(r, i, err)
	}
	defer give()
	body, err := store.Range(r.Context(), bucket, o, e.Offset, e.Length)
	if err != nil {
		return s.unread(w, r, i, n, tag, isPacked, err)
	}
	defer body.Close()
	content, kind, err := open(e, body, gzip, s.Content.Limits)
	if err != nil {
		return s.explain(r, i, err)
	}
	if !mediatype.Servable(kind) {
		return fault.New(fault.Unprocessable, "Page %d is not an image that can be shown", n)
	}
	describe(h, tag, kind, e, gzip)
	Copy(w, r, content)
	drain(body)
	return nil
}

// unread handles a failed read of page n. A page that its pack has lost is sent from the book.
func (s *Server) unread(w http.ResponseWriter, r *http.Request, i *Index, n int, tag string, isPacked bool, failure error) error {
	if err := httpapi.Confirmed(r.Context()); err != nil {
		return err // the file may have moved
	}
	switch {
	case !isPacked:
		return s.unopened(r, i, failure)
	case !blob.Lost(failure):
		return s.explain(r, i, failure)
	}
	s.Finder.forget(r.Context(), i.BookID) // the bucket was emptied, or the pack was rebuilt
	e, err := i.Entry(n)
	if err != nil {
		return err
	}
	return s.sendCostly(w, r, i, n, e, tag)
}

// drain reads the bytes behind an entry, as its range reaches to the next entry, so that the connection can be reused.
func drain(body io.Reader) {
	_, _ = io.CopyN(io.Discard, body, 4096) // the response is complete already
}

func describe(h http.Header, tag, kind string, e archive.Entry, gzip bool) {
	h.Set("ETag", tag)
	h.Set("Cache-Control", Immutable)
	h.Set("Content-Type", kind)
	length := e.Size
	if gzip {
		h.Set("Content-Encoding", "gzip")
		length = e.GzipSize()
	}
	if length > 0 { // unknown for a page that is not drawn yet
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
}

// open returns the content of an entry to send, and its media type, detected from its first bytes.
func open(e archive.Entry, body io.Reader, gzip bool, lim archive.Limits) (io.Reader, string, error) {
	if !gzip {
		plain, err := bytesOf(e, body, lim)
		if err != nil {
			return nil, "", err
		}
		n := whole
		if _, ok := plain.(io.WriterTo); ok {
			n = sniff
		}
		buffered := bufio.NewReaderSize(plain, n)
		head, err := buffered.Peek(int(min(int64(n), e.Size)))
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, "", err
		}
		return direct(buffered, plain), mediatype.Detect(head), nil
	}
	framed, err := e.Gzip(body)
	if err != nil {
		return nil, "", err
	}
	buffered := bufio.NewReaderSize(framed, sniff)
	packed, err := buffered.Peek(int(min(sniff, e.GzipSize())))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", err
	}
	const gzipHeader = 10
	head, err := beginning(packed[min(gzipHeader, len(packed)):])
	if len(head) == 0 && err != nil {
		return nil, "", &archive.Error{Kind: archive.Corrupt, Msg: e.Name + " cannot be decompressed", Err: err}
	}
	return direct(buffered, framed), mediatype.Detect(head), nil
}

// inflaters are pooled because each has a window of 32 KB, and a page needs one for 64 bytes only.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// beginning inflates the first bytes of a page, enough to detect its type.
func beginning(packed []byte) ([]byte, error) {
	z := inflaters.Get().(io.Reader)
	defer inflaters.Put(z)
	if err := z.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return nil, err
	}
	head := make([]byte, 64)
	n, err := io.ReadFull(z, head)
	return head[:n], err
}

// bytesOf returns the content of an entry. Stored entries pass through unchecked; inflated ones are compared with their
// checksum.
func bytesOf(e archive.Entry, body io.Reader, lim archive.Limits) (io.Reader, error) {
	if err := e.Check(); e.Method != archive.Stored || err != nil {
		return e.Open(body, lim)
	}
	return e.Raw(body)
}

// direct returns the buffered source. It offers WriteTo only if the source does: then bytes go from connection to
// connection without a copy here. Otherwise Copy's buffer is used, which is larger.
func direct(buffered *bufio.Reader, source io.Reader) io.Reader {
	if _, ok := source.(io.WriterTo); ok {
		return buffered
	}
	return onlyReader{buffered}
}

// How much of a page is read before the response starts, in bytes.
const (
	// sniff is enough to detect every type that can be shown, even behind the tables of a deflated block, and arrives
	// together with the header of the store's response.
	sniff = 1 << 10
	// whole is the size up to which an inflated page is verified before the response starts; larger damaged ones are
	// cut off.
	whole = 4 << 10
)

var buffers = sync.Pool{New: func() any { b := make([]byte, 128<<10); return &b }}

// Copy streams content. If the source fails midway it cuts the connection, so that no client takes a part for the
// whole.
func Copy(w http.ResponseWriter, r *http.Request, content io.Reader) {
	if err := send(w, content); err != nil {
		if r.Context().Err() == nil {
			httpapi.Note(r.Context(), slog.String("stream", err.Error()))
		}
		panic(http.ErrAbortHandler)
	}
}

func send(w io.Writer, content io.Reader) error {
	if c, ok := content.(io.WriterTo); ok {
		_, err := c.WriteTo(w)
		return err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	_, err := io.CopyBuffer(onlyWriter{w}, onlyReader{content}, *buf)
	return err
}

// onlyWriter and onlyReader hide ReadFrom and WriteTo, which would use their own small buffers instead of the pooled
// one.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// whyWithin limits the extra time that a request waits while the cause of a store failure is looked up.
const whyWithin = time.Second

// unopened explains a failed read of the book's own file. A file that the store cannot open is not a failure of the
// store.
func (s *Server) unopened(r *http.Request, i *Index, err error) error {
	ctx, cancel := context.WithTimeout(r.Context(), whyWithin)
	defer cancel()
	return s.explain(r, i, s.Content.Store.Why(ctx, i.Bucket, i.Object(), err))
}

// explain turns a failed read into the error for the client.
func (s *Server) explain(r *http.Request, i *Index, err error) error {
	err = s.changed(r.Context(), i, err)
	var a *archive.Error
	switch {
	case errors.As(err, new(*fault.Error)):
		return err
	case blob.Lost(err) && i.Error != nil && !errors.Is(err, blob.ErrNotFound): // a link stays what it is
		return fault.Wrap(err, fault.Conflict, "The file of this book could not be read when it was analysed: %s", *i.Error)
	case blob.Lost(err):
		return Stale(err)
	case errors.Is(err, blob.ErrArchived):
		return Archived(err)
	case errors.As(err, &a):
		return fault.Wrap(err, fault.Unprocessable, "The page cannot be read: %s", a.Msg)
	case httpapi.Gone(r.Context(), err):
		return err
	case errors.As(err, new(*archive.Undrawn)):
		return Undrawn(err)
	}
	what := "The library's storage is not reachable at the moment; try again shortly"
	switch {
	case errors.Is(err, blob.ErrClosed):
		what = "The file of this book exists but cannot be opened: check its permissions"
	case errors.Is(err, blob.ErrDenied) && i.PackKey == nil && s.root(r.Context(), i) == there:
		what = "The store refuses Longbox the file of this book: check its permissions"
	// A gateway over folders answers like this.
	case blob.InternalError(err) && i.PackKey == nil && s.root(r.Context(), i) == there:
		what = "The file of this book cannot be opened, although its library can: check the permissions of the file's folder"
	}
	return fault.Wrap(err, fault.Unavailable, "%s", what).After(retryAfter)
}

// Archived is the error for a file that the store must restore first, which takes hours.
func Archived(err error) error {
	return fault.Wrap(err, fault.Conflict, "The store has archived the file of this book (S3 Glacier): restore it before you read the book")
}

// Undrawn is the error for a page that was not drawn for a reason outside its file.
func Undrawn(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The page cannot be drawn at the moment; try again shortly").After(retryAfter)
}

// NotModified answers 304 if the client has this version. cache is the Cache-Control of the full response: a 304's
// header replaces the one that the client has stored.
func NotModified(w http.ResponseWriter, r *http.Request, tag, cache string) bool {
	have := strings.Join(r.Header.Values("If-None-Match"), ",")
	if have == "" {
		return false
	}
	for _, t := range strings.Split(have, ",") {
		t = strings.TrimSpace(t)
		if t == "*" || strings.Trim(strings.TrimPrefix(t, "W/"), `"`) == strings.Trim(tag, `"`) {
			w.Header().Set("ETag", tag)
			w.Header().Set("Cache-Control", cache)
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}
