package httpapi

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/fault"
)

// ServeFile responds with a file, or one range of it (RFC 9110 section 14), under the request's preconditions (RFC 9110
// section 13). The caller sets the headers ETag and Content-Type; nothing is read to guess the type. ServeFile calls
// open for the n bytes at from before it writes the header, so that an error gets its own status.
func ServeFile(w http.ResponseWriter, r *http.Request, size int64, modified time.Time, open func(from, n int64) (io.ReadCloser, error)) error {
	h := w.Header()
	from, to, outside := requestedRange(r, h.Get("ETag"), modified, size)
	src := &object{size: size, from: from}
	switch status := src.status(r, h, modified); {
	case status == http.StatusPreconditionFailed:
		return fault.New(fault.Precondition, "The file is not the version that If-Match or If-Unmodified-Since asks for; send the request without this header")
	case status == http.StatusNotModified:
	case outside != nil: // checked after the preconditions (RFC 9110 section 13.2.2)
		h.Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
		return outside
	case r.Method == http.MethodGet && size > 0:
		body, err := open(from, to-from)
		if err != nil {
			return err
		}
		defer body.Close()
		src.body = body
	}
	http.ServeContent(w, r, "", modified, src)
	if src.err != nil {
		if r.Context().Err() == nil {
			Note(r.Context(), slog.String("stream", src.err.Error()))
		}
		panic(http.ErrAbortHandler) // a truncated body must not look complete
	}
	return nil
}

var oneRange = lazyregexp.New(`^bytes=(\d*)-(\d*)$`)

// requestedRange returns the part [from, to) of the file to send. Malformed and multiple ranges are ignored: the whole
// file is sent. outside is the error for a range outside the file.
func requestedRange(r *http.Request, tag string, modified time.Time, size int64) (from, to int64, outside error) {
	whole := func() (int64, int64, error) {
		r.Header.Del("Range")
		return 0, size, nil
	}
	m := oneRange.FindStringSubmatch(r.Header.Get("Range"))
	if m == nil || m[1]+m[2] == "" || !ifRange(r.Header.Get("If-Range"), tag, modified) {
		return whole()
	}
	first, err1 := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[2], 10, 64)
	switch {
	case m[1] == "": // a suffix range
		if err2 != nil {
			return whole()
		}
		first, last = max(0, size-last), size-1
		if m[2] == "0" || size == 0 {
			first = size
		}
	case err1 != nil || (m[2] != "" && err2 != nil):
		return whole()
	case m[2] == "" || last >= size:
		last = size - 1
	case last < first:
		return whole()
	}
	if first >= size {
		return 0, 0, fault.New(fault.RangeInvalid, "The range lies outside the file of %d bytes", size)
	}
	return first, last + 1, nil
}

// ifRange reports whether a range may be served, because the client's copy is of this version (strong comparison).
func ifRange(v, tag string, modified time.Time) bool {
	if v == "" || v == tag {
		return true
	}
	t, err := http.ParseTime(v)
	return err == nil && t.Unix() == modified.Unix()
}

// object lets http.ServeContent read only the part that it will send.
type object struct {
	size int64
	from int64
	body io.Reader // from there
	at   int64     // offset where ServeContent wants to start
	err  error
}

// status returns the status that http.ServeContent will send, by its own rules for preconditions. HEAD has the same
// status as GET.
func (o *object) status(r *http.Request, h http.Header, modified time.Time) int {
	head := r.WithContext(r.Context()) // copy
	head.Method = http.MethodHead
	p := probe{header: h.Clone()}
	http.ServeContent(&p, head, "", modified, o)
	return p.status
}

// probe records the status of a response and discards the rest.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// Seek only records the offset: ServeContent seeks for the size, then to the start of the part.
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

// Read reads from the opened part.
func (o *object) Read(p []byte) (int, error) {
	if o.body == nil || o.at != o.from {
		o.err = errors.New("the part of the file was not opened")
		return 0, o.err
	}
	n, err := o.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		o.err = err
	}
	return n, err
}
