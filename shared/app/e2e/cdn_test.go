package e2e_test

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

// cdnSystem is a system that delivers through the CDN. Tenant one has books with a page of each kind of storage.
func cdnSystem(t *testing.T) (*system, *testkit.Client, book) {
	t.Helper()
	s := newSystem(t, links{cdn: true})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Zip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 900, 1200, 1)},
		testkit.File{Name: "2.jpg", Data: testkit.JPEG(t, 300, 400, 2), Deflate: true},
		testkit.File{Name: "3.jpg", Data: append([]byte("\xff\xd8\xff\xe0"), bytes.Repeat([]byte("no picture "), 50)...)}))
	s.scan(admin, s.library(admin, "Books", ""))
	return s, admin, s.books(admin)["S/a 1.cbz"]
}

// edge asks the CDN for an address, exactly as it is written.
func (s *system) edge(t testing.TB, method, url string, header ...string) answer {
	t.Helper()
	path := strings.TrimPrefix(url, s.cdn.URL)
	req, err := http.NewRequest(method, s.cdn.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque, _, _ = strings.Cut(path, "?")
	_, req.URL.RawQuery, _ = strings.Cut(path, "?")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := plain.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return answer{res.StatusCode, res.Header, res.ContentLength, body}
}

// location returns the address to which the interface redirects a client that requests a picture.
func (s *system) location(t testing.TB, c *testkit.Client, path string) string {
	t.Helper()
	a := s.fetch(t, c, "GET", path).want(t, 302)
	to := a.Header.Get("Location")
	if !strings.HasPrefix(to, s.cdn.URL+"/") || !strings.Contains(to, "/"+c.Tenant.String()+"/") || len(a.Body) != 0 {
		t.Fatalf("%s: sent to %q with %d bytes", path, to, len(a.Body))
	}
	return to
}

func cdnPath(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	_, path, _ := strings.Cut(rest, "/")
	path, _, _ = strings.Cut(path, "?")
	return "/" + path
}

func TestRedirectToTheCDN(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	reader := s.as("reader")
	direct := testkit.JPEG(t, 900, 1200, 1)
	for _, c := range []struct {
		path          string
		width, height int
		format        string
		bytes         []byte // the exact bytes, if given
		media         int64  // requests that reach the function before the second one is answered
	}{
		{pageURL(b, 1), 900, 1200, "jpeg", direct, 1},
		{pageURL(b, 2), 300, 400, "jpeg", testkit.JPEG(t, 300, 400, 2), 1},
		{pageURL(b, 1) + "?width=310&format=webp", 300, 400, "webp", nil, 1},
		{pageURL(b, 2) + "?height=150", 113, 150, "jpeg", nil, 1},
		{pageURL(b, 2) + "?width=4096", 300, 400, "jpeg", nil, 1},
		{"/api/v1/books/" + b.ID.String() + "/thumbnail", 300, 400, "jpeg", nil, 0},
		{"/api/v1/series/" + b.SeriesID.String() + "/thumbnail", 300, 400, "jpeg", nil, 0},
		{"/api/v1/libraries/" + b.LibraryID.String() + "/thumbnail", 300, 400, "jpeg", nil, 0},
	} {
		s.s3.Counter.Reset()
		to := s.location(t, admin, c.path)
		if all := s.s3.Counter.Reset(); len(all) != 0 {
			t.Errorf("%s: the redirection asked S3: %v", c.path, all)
		}
		if again := s.location(t, reader, c.path); again != to {
			t.Errorf("%s: two readers get two addresses:\n%s\n%s", c.path, to, again)
		}
		first, second := s.edge(t, "GET", to).want(t, 200), s.edge(t, "GET", to, "Accept-Encoding", "gzip").want(t, 200)
		if second.Header.Get("X-Cache") != "HIT" || !bytes.Equal(first.Body, second.Body) || (c.bytes != nil && !bytes.Equal(first.Body, c.bytes)) {
			t.Errorf("%s: %s of %d bytes, then %s of %d", c.path, first.Header.Get("X-Cache"), len(first.Body), second.Header.Get("X-Cache"), len(second.Body))
		}
		if w, h, format := size(t, first.Body); w != c.width || h != c.height || format != c.format || first.Header.Get("Content-Type") != "image/"+c.format {
			t.Errorf("%s: %d x %d %s as %s", c.path, w, h, format, first.Header.Get("Content-Type"))
		}
		if n := s.cdn.Asked(cdnPath(to)); n != c.media && !strings.Contains(c.path, "series/") && !strings.Contains(c.path, "libraries/") {
			t.Errorf("%s: media was asked %d times, want %d", c.path, n, c.media)
		}
		for _, a := range []answer{first, second} {
			if a.Header.Get("Cache-Control") != "private, max-age=31536000, immutable" || a.Header.Get("Vary") != "" || a.Header.Get("Content-Encoding") != "" ||
				a.Header.Get("Referrer-Policy") != "no-referrer" || a.Header.Get("Set-Cookie") != "" || a.Header.Get("X-Request-Id") != "" {
				t.Errorf("%s: headers %v", c.path, a.Header)
			}
		}
	}
	head := s.fetch(t, admin, "HEAD", pageURL(b, 1)).want(t, 302)
	if cc := head.Header.Get("Cache-Control"); !strings.HasPrefix(cc, "private, max-age=") || head.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("302 with Cache-Control %q, Referrer-Policy %q", cc, head.Header.Get("Referrer-Policy"))
	}
	list := "/api/v1/collections/" + fmt.Sprint(admin.Do("POST", "/api/v1/collections", object{"name": "Best"}).Want(201).Map()["id"])
	admin.Do("POST", list+"/series", object{"seriesIds": []any{b.SeriesID}}).Want(200)
	if cc := s.fetch(t, admin, "GET", list+"/thumbnail").want(t, 302).Header.Get("Cache-Control"); cc != "private, max-age=60" {
		t.Errorf("302 of a collection with Cache-Control %q", cc)
	}
	// Errors are reported before a client is redirected.
	s.fetch(t, admin, "GET", pageURL(b, 9)).problem(t, 404)
	s.fetch(t, admin, "GET", pageURL(b, 1)+"?width=x").problem(t, 400)
	s.fetch(t, s.User(t, "two", "admin"), "GET", pageURL(b, 1)).problem(t, 404)
	s.fetch(t, s.Key(t, admin, "BooksRead"), "GET", pageURL(b, 1)).problem(t, 403)
}

// The picture of a series comes from the bucket if a scan has put it there. Otherwise the origin renders it.
func TestSeriesPictureAtTheCDN(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	testkit.WriteFile(t, s.folder, "S/folder.jpg", testkit.JPEG(t, 800, 800, 2))
	s.scan(admin, b.LibraryID)
	path := "/api/v1/series/" + b.SeriesID.String() + "/thumbnail"
	for _, c := range []struct{ setting, side int }{{400, 400}, {200, 200}} {
		admin.Do("PUT", "/api/v1/admin/settings/thumbnail.max_dimension", object{"value": strconv.Itoa(c.setting)}).Want(200)
		to := s.location(t, admin, path)
		if w, h, format := size(t, s.edge(t, "GET", to).want(t, 200).Body); w != c.side || h != c.side || format != "jpeg" {
			t.Errorf("%d: %d x %d %s", c.setting, w, h, format)
		}
		if n := s.cdn.Asked(cdnPath(to)); (n == 0) != (c.setting == 400) {
			t.Errorf("%d: media was asked %d times", c.setting, n)
		}
	}
	admin.Do("PUT", "/api/v1/admin/settings/thumbnail.max_dimension", object{"value": "250"}).Want(200)
	before := s.location(t, admin, path)
	admin.Do("POST", "/api/v1/series/"+b.SeriesID.String()+"/cover", testkit.Form{Member: "file", File: testkit.JPEG(t, 300, 600, 4)}).Want(201)
	to := s.location(t, admin, path)
	if w, h, format := size(t, s.edge(t, "GET", to).want(t, 200).Body); w != 125 || h != 250 || format != "jpeg" || cdnPath(to) == cdnPath(before) {
		t.Errorf("uploaded: %d x %d %s at %s", w, h, format, to)
	}
	if n := s.cdn.Asked(cdnPath(to)); n != 1 {
		t.Errorf("uploaded: media was asked %d times", n)
	}
	// A client that still has the former picture's address gets that picture, which is rendered for it.
	if w, h, _ := size(t, s.edge(t, "GET", before).want(t, 200).Body); w != 250 || h != 250 {
		t.Errorf("shown before: %d x %d", w, h)
	}
}

// One address works for all pages, so that no page needs a redirection.
func TestAddressOfAllPages(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	at := "/api/v1/books/" + b.ID.String() + "/pages/address"
	var a struct {
		Original, Resized string
		Sizes             []int
		Formats           []string
		PageCount         int
		ExpiresAt         time.Time
	}
	admin.Do("GET", at, nil).Want(200).JSON(&a)
	if left := time.Until(a.ExpiresAt); left < 14*time.Minute || left > 76*time.Minute || a.PageCount != 3 || len(a.Sizes) < 5 || len(a.Formats) != 3 {
		t.Errorf("%+v", a)
	}
	fill := func(template string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(template) }
	one := fill(a.Original, "{pageNumber}", "1")
	if got := s.edge(t, "GET", one).want(t, 200); !bytes.Equal(got.Body, testkit.JPEG(t, 900, 1200, 1)) {
		t.Errorf("page 1: %d bytes", len(got.Body))
	}
	if cdnPath(one) != cdnPath(s.location(t, admin, pageURL(b, 1))) {
		t.Error("the address and the redirection are two objects")
	}
	small := s.edge(t, "GET", fill(a.Resized, "{pageNumber}", "1", "{width}", "300", "{height}", "", "{format}", "webp")).want(t, 200)
	if w, h, format := size(t, small.Body); w != 300 || h != 400 || format != "webp" {
		t.Errorf("%d x %d %s", w, h, format)
	}
	for _, bad := range [][3]string{{"1", "301", "300"}, {"1", "0300", ""}, {"01", "300", ""}, {"1", "0", ""}, {"1", "-1", ""}, {"0", "300", ""}, {"4", "300", ""}, {"1", "%33%30%30", ""}} {
		if got := s.edge(t, "GET", fill(a.Resized, "{pageNumber}", bad[0], "{width}", bad[1], "{height}", bad[2], "{format}", "webp")); got.Status < 400 || got.Status > 404 {
			t.Errorf("%v: status %d", bad, got.Status)
		}
	}
	// The wildcard covers only the folder of this book and version.
	path, query, _ := strings.Cut(strings.TrimPrefix(one, s.cdn.URL), "?")
	part := strings.Split(path, "/")
	for name, other := range map[string]string{
		"another tenant": strings.Replace(path, s.One.String(), s.Two.String(), 1), "another book": strings.Replace(path, b.ID.String(), uuid.NewString(), 1),
		"another kind": strings.Replace(path, "/page/", "/cover/", 1), "up": path + "/../../../../" + part[3], "the folder in the query": "/x?y=" + path,
	} {
		if !strings.Contains(other, "?") {
			other += "?"
		} else {
			other += "&"
		}
		if got := s.edge(t, "GET", other+query); got.Status != 403 && (name != "up" || got.Status != 404) {
			t.Errorf("%s: status %d: %.200s", name, got.Status, got.Body)
		}
	}
	two := s.User(t, "two", "admin")
	s.fetch(t, two, "GET", at).problem(t, 404)
	s.fetch(t, s.Key(t, admin, "BooksRead"), "GET", at).problem(t, 403)
	s.fetch(t, s.Anonymous(t, "one"), "GET", at).problem(t, 401)
	admin.Do("GET", "/api/v1/books/x/pages/address", nil).Want(400)
	// With direct delivery, the same templates lead to the interface itself.
	d := newSystem(t, links{})
	boss := d.as("admin")
	testkit.WriteFile(t, d.folder, "S/a 1.cbz", testkit.Comic(t, 1, 2, ""))
	d.scan(boss, d.library(boss, "Books", ""))
	boss.Do("GET", "/api/v1/books/"+d.books(boss)["S/a 1.cbz"].ID.String()+"/pages/address", nil).Want(200).JSON(&a)
	d.fetch(t, boss, "GET", fill(a.Original, "{pageNumber}", "2")).want(t, 200)
	got := d.fetch(t, boss, "GET", fill(a.Resized, "{pageNumber}", "2", "{width}", "", "{height}", "150", "{format}", "jpeg")).want(t, 200)
	if c, err := jpeg.DecodeConfig(bytes.NewReader(got.Body)); err != nil || c.Height > 150 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Web clients on other hosts may read pictures, whoever answers. A request that was redirected has the origin null, and
// its preflight request names the headers of the first one.
func TestWebClientsReadFromTheCDN(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	for _, path := range []string{pageURL(b, 1), pageURL(b, 2) + "?height=150", "/api/v1/books/" + b.ID.String() + "/thumbnail"} {
		to := s.location(t, admin, path)
		for _, cached := range []bool{false, true} {
			a := s.edge(t, "GET", to, "Origin", "null").want(t, 200)
			expose := a.Header.Get("Access-Control-Expose-Headers")
			if got := a.Header.Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{"*"}) || !strings.Contains(expose, "Content-Range") ||
				a.Header.Get("Access-Control-Allow-Credentials") != "" || (a.Header.Get("X-Cache") == "HIT") != cached {
				t.Errorf("%s from %s: %v", path, a.Header.Get("X-Origin"), a.Header)
			}
		}
		a := s.edge(t, "OPTIONS", to, "Origin", "null", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "x-api-key").want(t, 204)
		if got := a.Header.Get("Access-Control-Allow-Headers"); !strings.Contains(got, "X-API-Key, X-Codex-Device-Id, Range") ||
			a.Header.Get("Access-Control-Allow-Methods") != "GET, HEAD" || a.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s, preflight: %v", path, a.Header)
		}
	}
	a := s.edge(t, "GET", "/page/x", "Origin", "https://read.example").want(t, 403)
	if a.Header.Get("Access-Control-Allow-Origin") != "*" { // otherwise the client cannot tell that its address has expired
		t.Errorf("without a signature: %v", a.Header)
	}
}

// Many concurrent misses of one object render it once, even if they reach different processes.
func TestOneRenderPerObject(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	path := cdnPath(s.location(t, admin, pageURL(b, 1)+"?width=800&format=png"))
	const processes = 4
	var servers []http.Handler
	for range processes {
		servers = append(servers, s.anotherMedia(t))
	}
	s.s3.Counter.Reset()
	var all sync.WaitGroup
	bodies := make([][]byte, 2*processes)
	for i := range bodies {
		all.Go(func() {
			req, err := http.NewRequest("GET", "/cdn"+path, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Origin-Secret", s.cdn.Config.Origin.Secrets[0])
			w := httptest.NewRecorder()
			servers[i%processes].ServeHTTP(w, req)
			if w.Code != 200 {
				t.Errorf("status %d: %.200s", w.Code, w.Body.Bytes())
			}
			bodies[i] = w.Body.Bytes()
		})
	}
	all.Wait()
	library, _ := buckets(s.s3.Counter.Reset())
	// One process reads the library. A second one may do so if it starts after the lock was released and before the object
	// was stored.
	if library > 2 {
		t.Errorf("the page was read %d times from the library", library)
	}
	for i := range bodies {
		if !bytes.Equal(bodies[i], bodies[0]) {
			t.Errorf("answer %d differs", i)
		}
	}
}

// A tenant's limit for renditions also applies at the CDN: pages beyond it are rendered but not stored.
func TestRenditionQuotaAtTheCDN(t *testing.T) {
	t.Parallel()
	s, admin, b := cdnSystem(t)
	draw := func(origin http.Handler, width string) {
		t.Helper()
		req := httptest.NewRequest("GET", "/cdn"+cdnPath(s.location(t, admin, pageURL(b, 1)+"?format=png&width="+width)), nil)
		req.Header.Set("X-Origin-Secret", s.cdn.Config.Origin.Secrets[0])
		w := httptest.NewRecorder()
		origin.ServeHTTP(w, req)
		if w.Code != 200 {
			t.Fatalf("status %d: %.200s", w.Code, w.Body.Bytes())
		}
	}
	kept := func() (n int) {
		t.Helper()
		for list, err := range s.s3.Config.Media().List(t.Context(), s.s3.Config.MediaBucket, blob.Expiring, "") {
			if err != nil {
				t.Fatal(err)
			}
			n += len(list)
		}
		return n
	}
	for _, c := range []struct{ limit, kept int }{{0, 0}, {1 << 30, 1}} {
		s.DB.Exec(t, "update tenant set max_rendition_bytes = $2 where id = $1", s.One, c.limit)
		origin := s.anotherMedia(t) // remembers no tenant
		for range 3 {               // the first miss alone stores nothing
			draw(origin, "800")
		}
		if n := kept(); n != c.kept {
			t.Errorf("limit of %d bytes: %d pages are kept, want %d", c.limit, n, c.kept)
		}
	}
	used := func() (n int64) {
		t.Helper()
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select bytes from rendition_usage where tenant_id = $1", s.One).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	before := used()
	draw(s.anotherMedia(t), "600") // once: it is not stored
	if now := used(); before == 0 || now != before || kept() != 1 {
		t.Errorf("%d bytes are counted, then %d for %d pages", before, now, kept())
	}
}

// anotherMedia starts a second process of the media function.
func (s *system) anotherMedia(t *testing.T) http.Handler {
	t.Helper()
	a, base, err := media.New(media.Config{HTTPConfig: s.config, CDN: s.cdn.Config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	return a.Router
}
