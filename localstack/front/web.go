package front

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
)

// ours are the first words of the paths that Longbox answers itself, besides those that settings choose.
var ours = []string{"api", "opds", "health", "koreader", "verify-email"}

// entry is the file that a web application begins with.
const entry = "index.html"

// Web is a web application: the folder that its build made, with an index.html.
type Web struct {
	folder string
	docs   string // the path where Longbox describes itself
}

// NewWeb takes the folder of a web application, and the path of Longbox' description, which is not the application's. A
// folder without an index.html is an error that says what to do.
func NewWeb(folder, docs string) (*Web, error) {
	w := &Web{folder, docs}
	f, _, err := w.open(entry)
	if err != nil {
		return nil, fmt.Errorf("WEB_DIR: %s has no file %s that can be read (%w): name the folder that the build of the web application made",
			folder, entry, err)
	}
	return w, f.Close()
}

// has tells whether the application answers a request: one that reads, at no path of Longbox. Settings choose the word
// before /api where apps made for Komga ask.
func (w *Web) has(method, p string) bool {
	if method != http.MethodGet && method != http.MethodHead || strings.HasPrefix(p+"/", w.docs+"/") {
		return false
	}
	part := strings.Split(strings.TrimPrefix(p, "/"), "/")
	return !slices.Contains(ours, part[0]) && (len(part) == 1 || part[1] != "api")
}

// ServeHTTP answers with the file of the path, and with index.html where there is none, since the application knows its
// own paths. Hidden files, and what links lead to outside of the folder, are not there. Browsers ask each time whether
// a file is still the same, so that a new build is seen at once.
func (w *Web) ServeHTTP(res http.ResponseWriter, r *http.Request) {
	f, info, err := w.open(strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/"))
	if err != nil {
		f, info, err = w.open(entry)
	}
	if err != nil {
		unavailable(res, "The files of the web application cannot be read")
		return
	}
	defer f.Close()
	h := res.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	if path.Ext(info.Name()) == ".webmanifest" { // unknown to many systems
		h.Set("Content-Type", "application/manifest+json")
	}
	http.ServeContent(res, r, info.Name(), info.ModTime(), f)
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
