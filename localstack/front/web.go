package front

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// ours are the first path segments that belong to Longbox, besides configured ones.
var ours = []string{"api", "opds", "health", "koreader", "verify-email"}

// entry is the start page of a web application.
const entry = "index.html"

// Web is a web application: its build folder with an index.html.
type Web struct {
	folder string
	docs   string // path of the API documentation
}

// NewWeb opens the folder of a web application. docs is the path of the API documentation, which the application does
// not get. If the folder has no index.html, the error says what to do.
func NewWeb(folder, docs string) (*Web, error) {
	w := &Web{folder, docs}
	f, _, err := w.open(entry)
	if err != nil {
		return nil, fmt.Errorf("WEB_DIR: %s has no file %s that can be read (%w): name the folder that the build of the web application created",
			folder, entry, err)
	}
	return w, f.Close()
}

// has reports whether the application serves a request: a GET or HEAD outside Longbox's paths. The word before /api,
// for apps made for Komga, is configurable.
func (w *Web) has(method, p string) bool {
	if method != http.MethodGet && method != http.MethodHead || strings.HasPrefix(p+"/", w.docs+"/") {
		return false
	}
	part := strings.Split(strings.TrimPrefix(p, "/"), "/")
	return !slices.Contains(ours, part[0]) && (len(part) == 1 || part[1] != "api")
}

// ServeHTTP serves the file at the path, or index.html if there is none, because the application routes its own paths.
// It serves no hidden files and no links to outside the folder. Browsers revalidate files on each request, so that
// another build is visible at once. The ETag is a hash of the content, and no date is sent: files of an older build
// have older dates, and some builds give all files the same date.
func (w *Web) ServeHTTP(res http.ResponseWriter, r *http.Request) {
	f, info, err := w.open(strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/"))
	if err != nil {
		f, info, err = w.open(entry)
	}
	const unread = "The files of the web application cannot be read"
	if err != nil {
		unavailable(res, unread)
		return
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		unavailable(res, unread)
		return
	}
	h := res.Header()
	h.Set("ETag", fmt.Sprintf(`"%x"`, hash.Sum(nil)[:16]))
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	if path.Ext(info.Name()) == ".webmanifest" { // many systems do not know this type
		h.Set("Content-Type", "application/manifest+json")
	}
	http.ServeContent(res, r, info.Name(), time.Time{}, f)
}

func (w *Web) open(name string) (*os.File, fs.FileInfo, error) {
	if strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
		return nil, nil, fs.ErrNotExist
	}
	f, err := os.OpenInRoot(w.folder, name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
