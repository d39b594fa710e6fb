package httpapi

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// AcceptsGzip reports whether the client accepts a response with Content-Encoding gzip (RFC 9110 section 12.5.3).
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, q, _ := strings.Cut(weight, "=")
			n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
			return err != nil || n > 0 // no weight means 1
		}
	}
	return false
}

// packet is the size in bytes up to which a response is not compressed: it fits into one packet anyway.
const packet = 1400

// packers are expensive to create: each has tables of about 800 KB.
var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for other levels
	return z
}}

// Gzip compresses text responses for clients that accept it. It keeps them in memory until the handler returns. It is
// for functions whose responses are buffered anyway, behind a CDN that compresses only what it caches.
func Gzip(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !AcceptsGzip(r) {
			handler.ServeHTTP(w, r)
			return
		}
		k := &kept{ResponseWriter: w, status: http.StatusOK}
		handler.ServeHTTP(k, r)
		k.send()
	})
}

// kept is a buffered response.
type kept struct {
	http.ResponseWriter
	status int
	begun  bool
	body   bytes.Buffer
}

func (k *kept) WriteHeader(status int) {
	if !k.begun {
		k.status, k.begun = status, true
	}
}

func (k *kept) Write(p []byte) (int, error) {
	k.begun = true
	return k.body.Write(p)
}

func (k *kept) send() {
	h, body := k.Header(), k.body.Bytes()
	if len(body) > packet && h.Get("Content-Encoding") == "" && h.Get("Content-Range") == "" && isText(h.Get("Content-Type")) {
		body = packed(body)
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		h.Del("Content-Length")
		if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
			h.Set("ETag", "W/"+tag) // same content in another encoding
		}
	}
	k.ResponseWriter.WriteHeader(k.status)
	_, _ = k.ResponseWriter.Write(body) // a buffer, or the client has left
}

func packed(body []byte) []byte {
	var out bytes.Buffer
	z := packers.Get().(*gzip.Writer)
	defer packers.Put(z)
	z.Reset(&out)
	_, _ = z.Write(body) // into memory: never fails
	_ = z.Close()
	return out.Bytes()
}

func isText(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, ";")
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml")
}
