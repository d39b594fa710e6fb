package front

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestWebHas(t *testing.T) {
	t.Parallel()
	w := &Web{docs: "/about/api"}
	for _, path := range []string{"/", "", "/books/1", "/login/oidc/complete", "/assets/a.js", "/apix", "/healthy", "/about", "/about/apis", "/komga"} {
		if !w.has("GET", path) || !w.has("HEAD", path) || w.has("POST", path) || w.has("OPTIONS", path) {
			t.Errorf("%s is the application's, for GET and HEAD", path)
		}
	}
	for _, path := range []string{"/api", "/api/v1/books", "/api/docs", "/opds", "/opds/v2", "/health", "/koreader/users/auth", "/verify-email", "/komga/api/v1/books",
		"/other/api/v2/users/me", "/about/api", "/about/api/page.js"} {
		if w.has("GET", path) {
			t.Errorf("%s is Longbox' own", path)
		}
	}
}

// webFolder creates a built web application beside a file that does not belong to it.
func webFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret": "secret", "app/index.html": "<p>app</p>", "app/assets/a.js": "let a", "app/manifest.webmanifest": "{}", "app/.env": "secret", "app/.git/config": "secret",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(dir, "app/out")); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "app")
}

func TestWebServes(t *testing.T) {
	t.Parallel()
	folder := webFolder(t)
	web, err := NewWeb(folder, "/docs")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(Proxy(Targets{API: behind(t, "api"), Media: behind(t, "media"), Relay: behind(t, "relay"), Web: web}, 0, t.Logf))
	t.Cleanup(s.Close)
	get := func(path string, header http.Header) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = path // unchanged
		if header != nil {
			r.Header = header
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	const page = "<p>app</p>"
	for path, want := range map[string]struct{ kind, body string }{
		"/":                        {"text/html; charset=utf-8", page},
		"/index.html":              {"text/html; charset=utf-8", page},
		"/series/12?tab=books":     {"text/html; charset=utf-8", page},
		"/assets":                  {"text/html; charset=utf-8", page},
		"/assets/a.js":             {"text/javascript; charset=utf-8", "let a"},
		"/manifest.webmanifest":    {"application/manifest+json", "{}"},
		"/assets/gone.js":          {"text/html; charset=utf-8", page},
		"/.env":                    {"text/html; charset=utf-8", page},
		"/.git/config":             {"text/html; charset=utf-8", page},
		"/out":                     {"text/html; charset=utf-8", page},
		"/../secret":               {"text/html; charset=utf-8", page},
		"/%2e%2e/secret":           {"text/html; charset=utf-8", page},
		"/assets/..%2f..%2fsecret": {"text/html; charset=utf-8", page},
		"/a%00b":                   {"text/html; charset=utf-8", page},
	} {
		res, body := get(path, nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != want.kind || body != want.body {
			t.Errorf("%s: %d %s %q", path, res.StatusCode, res.Header.Get("Content-Type"), body)
		}
		if h := res.Header; h.Get("Cache-Control") != "no-cache" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" ||
			h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if _, body := get("/api/v1/books", nil); !strings.Contains(body, `"api"`) {
		t.Errorf("the interface is the api's: %s", body)
	}
	if _, body := get("/api/v1/books/1/pages/2", nil); !strings.Contains(body, `"media"`) {
		t.Errorf("pages are media's: %s", body)
	}
	for path, name := range map[string]string{"/": entry, "/assets/a.js": "assets/a.js"} {
		res, old := get(path, nil)
		have := http.Header{"If-None-Match": res.Header["Etag"], "If-Modified-Since": {time.Now().UTC().Format(http.TimeFormat)}}
		if res, body := get(path, have); res.StatusCode != 304 || body != "" {
			t.Errorf("%s that is the same: %d %s", path, res.StatusCode, body)
		}
		name = filepath.Join(folder, name)
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		other := strings.Replace(old, "a", "b", 1)
		for _, at := range []time.Time{info.ModTime(), info.ModTime().Add(-time.Hour)} { // builds can set any time
			if err := errors.Join(os.WriteFile(name, []byte(other), 0o644), os.Chtimes(name, at, at)); err != nil {
				t.Fatal(err)
			}
			if res, body := get(path, have); res.StatusCode != 200 || body != other {
				t.Errorf("%s of another build, of %s: %d %s", path, at, res.StatusCode, body)
			}
			delete(have, "If-None-Match") // as stored from an earlier version of Longbox
		}
	}
	if err := os.Remove(filepath.Join(folder, entry)); err != nil {
		t.Fatal(err)
	}
	if res, body := get("/", nil); res.StatusCode != 503 || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("without %s: %d %s", entry, res.StatusCode, body)
	}
}

func TestNewWebNeedsAnApplication(t *testing.T) {
	t.Parallel()
	folder := webFolder(t)
	for _, wrong := range []string{filepath.Join(folder, "gone"), filepath.Join(folder, "assets"), filepath.Join(folder, entry)} {
		if _, err := NewWeb(wrong, "/docs"); err == nil || !strings.HasPrefix(err.Error(), "WEB_DIR: "+wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
