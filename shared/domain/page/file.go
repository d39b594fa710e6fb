package page

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const retryAfter = 2 * time.Second

// File answers with the book's file: whole, or one range of it (RFC 9110 14), under the conditions of the request (RFC 9110 13).
func (s *Server) File(w http.ResponseWriter, r *http.Request, i *Index) error {
	h := w.Header()
	name := path.Base(i.Key)
	h.Set("ETag", i.fileTag())
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Type", mediatype.OfBook(i.Format))
	h.Set("Content-Disposition", disposition(name))
	from, to, outside := wanted(r, i)
	src := &object{server: s, request: r, index: i, from: from, end: to}
	defer src.Close()
	switch status := src.status(h); {
	case status == http.StatusPreconditionFailed:
		return fault.New(fault.Precondition, "The file is not the version that If-Match or If-Unmodified-Since asks for; ask for it without")
	case status == http.StatusNotModified:
	case outside != nil: // which counts after the conditions (RFC 9110 13.2.2)
		h.Set("Content-Range", "bytes */"+strconv.FormatInt(i.Size, 10))
		return outside
	default:
		if r.Method == http.MethodGet && i.Size > 0 {
			if err := src.open(); err != nil { // before the header is written, so that a failure has its own status
				return s.unopened(r, i, err)
			}
		}
	}
	http.ServeContent(w, r, "", i.Modified, src)
	if src.err != nil {
		if r.Context().Err() == nil {
			s.changed(r.Context(), i, src.err)
			httpapi.Note(r.Context(), slog.String("stream", src.err.Error()))
		}
		panic(http.ErrAbortHandler) // a short body must not look whole
	}
	return nil
}

func (i *Index) fileTag() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d|%s|%d", i.BookID, i.Size, i.ETag, i.Modified.UnixNano()))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

var oneRange = lazyregexp.New(`^bytes=(\d*)-(\d*)$`)

// wanted is the part [from, to) of the file that the answer will hold. Malformed and multiple ranges are
// dropped: the whole file is sent. outside is the fault of one that lies outside.
func wanted(r *http.Request, i *Index) (from, to int64, outside error) {
	whole := func() (int64, int64, error) {
		r.Header.Del("Range")
		return 0, i.Size, nil
	}
	m := oneRange.FindStringSubmatch(r.Header.Get("Range"))
	if m == nil || m[1]+m[2] == "" || !ifRange(r.Header.Get("If-Range"), i) {
		return whole()
	}
	first, err1 := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[2], 10, 64)
	switch {
	case m[1] == "": // the last bytes
		if err2 != nil {
			return whole()
		}
		first, last = max(0, i.Size-last), i.Size-1
		if m[2] == "0" || i.Size == 0 {
			first = i.Size
		}
	case err1 != nil || (m[2] != "" && err2 != nil):
		return whole()
	case m[2] == "" || last >= i.Size:
		last = i.Size - 1
	case last < first:
		return whole()
	}
	if first >= i.Size {
		return 0, 0, fault.New(fault.RangeInvalid, "The range lies outside the file of %d bytes", i.Size)
	}
	return first, last + 1, nil
}

// ifRange tells whether a range may be served: the client's copy is of this version (strong comparison).
func ifRange(v string, i *Index) bool {
	if v == "" || v == i.fileTag() {
		return true
	}
	t, err := http.ParseTime(v)
	return err == nil && t.Unix() == i.Modified.Unix()
}

// disposition names the file for saving: an ASCII form for old clients and the real name (RFC 6266, RFC 8187).
func disposition(name string) string {
	ascii := strings.Map(func(c rune) rune {
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '%' {
			return '_'
		}
		return c
	}, name)
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// object lets http.ServeContent read exactly the part that it is about to send, by one ranged GET.
type object struct {
	server    *Server
	request   *http.Request
	index     *Index
	from, end int64
	at        int64
	left      int64 // bytes of the part that are still to be read
	body      io.ReadCloser
	atEnd     func() error // asked before the last bytes are given away
	err       error
}

// longPart is how many bytes a folder's file may be overwritten under: a smaller part is read from it at once, however slowly
// its reader takes it.
const longPart = 4 << 20

// status is that of the answer of http.ServeContent: by its own rules for the conditions of a request, since HEAD answers
// like GET.
func (o *object) status(h http.Header) int {
	head := o.request.WithContext(o.request.Context()) // a copy
	head.Method = http.MethodHead
	p := probe{header: h.Clone()}
	http.ServeContent(&p, head, "", o.index.Modified, o)
	return p.status
}

// probe takes the status of an answer that nobody gets.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

func (o *object) open() (err error) {
	o.left, o.atEnd = o.end-o.from, o.overwritten
	o.body, err = o.server.Content.Store.Range(o.request.Context(), o.index.Bucket, o.index.Object(), o.from, o.end-o.from)
	return err
}

// Seek only notes where reading begins: ServeContent asks for the size and then for the start of the part.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		o.at = offset
	case io.SeekEnd:
		o.at = o.index.Size + offset
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
	if o.left -= int64(n); o.left == 0 && o.err == nil {
		if o.err = o.atEnd(); o.err != nil {
			return 0, o.err
		}
	}
	return n, err
}

// overwritten is an error where the file is another one by now: a file of a folder that was overwritten in place while it was
// read came as a mixture of both. What a store has an ETag for never changes.
func (o *object) overwritten() error {
	if o.index.ETag != "" || o.end-o.from < longPart {
		return nil
	}
	last, err := o.server.Content.Store.Range(o.request.Context(), o.index.Bucket, o.index.Object(), o.end-1, 1)
	if err == nil {
		last.Close()
	}
	if errors.Is(err, blob.ErrChanged) || errors.Is(err, blob.ErrRange) {
		return err
	}
	return nil
}

// Close ends the request to the store.
func (o *object) Close() error {
	if o.body == nil {
		return nil
	}
	return o.body.Close()
}
