package apidocs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/platform/httpapi"
)

//go:embed swagger/*.gz page.js page.css
var files embed.FS

// asset is a file, plain and gzipped. Each form is built on first use.
type asset struct {
	mediaType string
	etag      func() string
	plain     func() ([]byte, error)
	packed    func() ([]byte, error)
}

// fromGzip returns an asset that is stored gzipped.
func fromGzip(mediaType, name string) *asset {
	packed := sync.OnceValues(func() ([]byte, error) { return files.ReadFile(name) })
	return newAsset(mediaType, func() ([]byte, error) { return gunzip(packed()) }, packed)
}

// fromPlain returns an asset that is gzipped here. The content must not change.
func fromPlain(mediaType string, read func() ([]byte, error)) *asset {
	return newAsset(mediaType, read, sync.OnceValues(func() ([]byte, error) { return compress(read()) }))
}

func newAsset(mediaType string, plain, packed func() ([]byte, error)) *asset {
	a := &asset{mediaType: mediaType, plain: plain, packed: packed}
	a.etag = sync.OnceValue(func() string {
		data, err := packed()
		if err != nil {
			return ""
		}
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:12])
	})
	return a
}

// serve responds with the asset, gzipped if the client accepts that.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	read, tag := a.plain, a.etag()
	if httpapi.AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		read, tag = a.packed, tag+"-gzip"
	}
	data, err := read()
	if err != nil {
		h.Del("Content-Encoding")
		return err
	}
	h.Set("Content-Type", a.mediaType)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+tag+`"`)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	return nil
}

func gunzip(packed []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("embedded file: %w", err)
	}
	return io.ReadAll(z)
}

func compress(plain []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil { // flushes the rest
		return nil, err
	}
	return out.Bytes(), nil
}
