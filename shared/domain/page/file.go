package page

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

const retryAfter = 2 * time.Second

// File sends the book's file, whole or one range of it (RFC 9110, section 14), with conditional requests (RFC 9110,
// section 13).
func (s *Server) File(w http.ResponseWriter, r *http.Request, i *Index) error {
	end, err := s.downloads.begin(r)
	if err != nil {
		return err
	}
	defer end()
	h := w.Header()
	name := path.Base(i.Key)
	h.Set("ETag", i.fileTag())
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Content-Type", mediatype.OfBook(i.Format))
	h.Set("Content-Disposition", disposition(name))
	return httpapi.ServeFile(w, r, i.Size, i.Modified, func(from, n int64) (io.ReadCloser, error) {
		body, err := s.open(r, i, from, n)
		if err != nil {
			return nil, s.unopened(r, i, err)
		}
		return body, nil
	})
}

func (i *Index) fileTag() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d|%s|%d", i.BookID, i.Size, i.ETag, i.Modified.UnixNano()))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// disposition is a Content-Disposition for saving the file: an ASCII name for old clients and the real one (RFC 6266,
// RFC 8187).
func disposition(name string) string {
	ascii := strings.Map(func(c rune) rune {
		if c < 0x20 || c > 0x7e || c == '"' || c == '\\' || c == '%' {
			return '_'
		}
		return c
	}, name)
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

// open opens n bytes of a book's file with one ranged GET.
func (s *Server) open(r *http.Request, i *Index, from, n int64) (io.ReadCloser, error) {
	body, err := s.Content.Store.Range(r.Context(), i.Bucket, i.Object(), from, n)
	if err != nil {
		return nil, err
	}
	out := &part{ReadCloser: body, server: s, request: r, index: i, from: from, n: n, left: n}
	out.atEnd = out.overwritten
	return out, nil
}

// part is the part of a book's file that a response holds.
type part struct {
	io.ReadCloser
	server        *Server
	request       *http.Request
	index         *Index
	from, n, left int64        // left: bytes still to be read
	atEnd         func() error // called before the last bytes are handed out
}

// longPart is the size in bytes from which a part may be overwritten while it is read from a folder. A smaller part is
// read at once, however slow the client is.
const longPart = 4 << 20

func (p *part) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if p.left -= int64(n); n > 0 && p.left == 0 {
		if changed := p.atEnd(); changed != nil {
			p.server.renew(p.request.Context(), p.index)
			return 0, changed
		}
	}
	return n, err
}

// overwritten returns an error if the file has changed since. A folder's file that was overwritten in place while it
// was read may have come as a mixture of both versions. An object with an ETag never changes in place.
func (p *part) overwritten() error {
	if p.index.ETag != "" || p.n < longPart {
		return nil
	}
	last, err := p.server.Content.Store.Range(p.request.Context(), p.index.Bucket, p.index.Object(), p.from+p.n-1, 1)
	if err == nil {
		last.Close()
	}
	if errors.Is(err, blob.ErrChanged) || errors.Is(err, blob.ErrRange) {
		return err
	}
	return nil
}
