package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// filled is a system of two tenants that own the same file. All their pictures are in the CDN's cache.
type filled struct {
	*system
	one, two   *testkit.Client
	urls       []string // signed addresses of tenant one
	theirs     []string // tenant two's addresses of the same pictures
	book, twin book
}

func newFilled(t *testing.T) *filled {
	t.Helper()
	s, admin, b := cdnSystem(t)
	f := &filled{system: s, one: admin, two: s.User(t, "two", "admin"), book: b}
	s.exec("insert into library_root (tenant_id, path, bucket) values ($1, '/books', 'books')", s.Two)
	s.scan(f.two, s.library(f.two, "Books", ""))
	f.twin = s.books(f.two)["S/a 1.cbz"]
	for _, q := range []string{"/pages/1", "/pages/2", "/pages/1?width=150", "/pages/2?width=150&format=webp", "/thumbnail"} {
		f.urls = append(f.urls, s.location(t, f.one, "/api/v1/books/"+b.ID.String()+q))
		f.theirs = append(f.theirs, s.location(t, f.two, "/api/v1/books/"+f.twin.ID.String()+q))
	}
	for _, u := range f.urls {
		s.edge(t, "GET", u).want(t, 200)
		if a := s.edge(t, "GET", u).want(t, 200); a.Header.Get("X-Cache") != "HIT" {
			t.Fatalf("%s is not in the cache: %s", cdnPath(u), a.Header.Get("X-Cache"))
		}
	}
	return f
}

// params returns the query parameters of a signed address, in order.
func params(url string) []string {
	_, query, _ := strings.Cut(url, "?")
	return strings.Split(query, "&")
}

func bare(url string) string { before, _, _ := strings.Cut(url, "?"); return before }

// Nothing in the cache is served without a valid signature.
func TestNoHitWithoutSignature(t *testing.T) {
	t.Parallel()
	f := newFilled(t)
	flip := func(p string) string { // replaces it with another character of the same alphabet
		name, value, _ := strings.Cut(p, "=")
		other := "A"
		if strings.HasPrefix(value, other) {
			other = "B"
		}
		return name + "=" + other + value[1:]
	}
	for i, u := range f.urls {
		p := params(u)
		if len(p) != 3 || !strings.HasPrefix(p[0], "Expires=") || !strings.HasPrefix(p[1], "Signature=") || !strings.HasPrefix(p[2], "Key-Pair-Id=") {
			t.Fatalf("an address of another make: %s", u)
		}
		end, err := strconv.ParseInt(strings.TrimPrefix(p[0], "Expires="), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		later := "Expires=" + strconv.FormatInt(end+3600, 10)
		policy := func(s string) string {
			return "Policy=" + strings.NewReplacer("+", "-", "=", "_", "/", "~").Replace(base64.StdEncoding.EncodeToString([]byte(s)))
		}
		other := params(f.urls[(i+1)%len(f.urls)])
		for name, query := range map[string]string{
			"no query": "", "no signature": p[0] + "&" + p[2], "no key": p[0] + "&" + p[1], "no expiry": p[1] + "&" + p[2],
			"altered signature": p[0] + "&" + flip(p[1]) + "&" + p[2], "empty signature": p[0] + "&Signature=&" + p[2],
			"later expiry": later + "&" + p[1] + "&" + p[2], "expiry with a sign": "Expires=+" + p[0][8:] + "&" + p[1] + "&" + p[2],
			"other key id": p[0] + "&" + p[1] + "&Key-Pair-Id=KOTHER", "the signature of another picture": strings.Join(other, "&"),
			"another tenant's signature": strings.Join(params(f.theirs[i]), "&"), "two expiries": later + "&" + strings.Join(p, "&"),
			"more in the query": strings.Join(p, "&") + "&x=1", "own policy": policy(`{"Statement":[{"Resource":"*","Condition":{"DateLessThan":{"AWS:EpochTime":9999999999}}}]}`) + "&" + p[1] + "&" + p[2],
			"policy and expiry": policy(`{"Statement":[{"Resource":"*"}]}`) + "&" + strings.Join(p, "&"),
		} {
			for _, method := range []string{"GET", "HEAD"} {
				if a := f.edge(t, method, bare(u)+"?"+query); a.Status != 403 {
					t.Errorf("%s %s with %s: status %d", method, cdnPath(u), name, a.Status)
				}
			}
		}
		for name, header := range map[string][]string{"another host": {"Host", "evil.example"}, "another port": {"Host", "127.0.0.1:1"}} {
			if a := f.edge(t, "GET", u, header...); a.Status != 403 {
				t.Errorf("%s as %s: status %d", cdnPath(u), name, a.Status)
			}
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PURGE"} {
			if a := f.edge(t, method, u); a.Status == 200 {
				t.Errorf("%s %s: status %d", method, cdnPath(u), a.Status)
			}
		}
		for name, header := range map[string][]string{"Range": {"Range", "bytes=0-9"}, "X-Original-Uri": {"X-Original-Uri", strings.TrimPrefix(u, f.cdn.URL)},
			"credentials": {"Authorization", f.one.Header.Get("Authorization")}, "the secret": {"X-Origin-Secret", f.cdn.Config.Origin.Secrets[0]}} {
			if a := f.edge(t, "GET", bare(u), header...); a.Status != 403 {
				t.Errorf("%s without a signature but with %s: status %d", cdnPath(u), name, a.Status)
			}
		}
		f.edge(t, "GET", u).want(t, 200)
	}
	// The same by the edge's clock: the addresses are used after they have expired.
	f.cdn.Ahead(76 * time.Minute)
	for _, u := range f.urls {
		if a := f.edge(t, "GET", u); a.Status != 403 {
			t.Errorf("%s after its end: status %d", cdnPath(u), a.Status)
		}
	}
}

// With two tenants and one file, no path, header or spelling leads from one tenant to the other's picture.
func TestTenantsDoNotMixInTheCDN(t *testing.T) {
	t.Parallel()
	f := newFilled(t)
	for i, u := range f.urls {
		if cdnPath(u) == cdnPath(f.theirs[i]) {
			t.Errorf("both tenants have %s", cdnPath(u))
		}
		mine, theirs := f.edge(t, "GET", u).want(t, 200), f.edge(t, "GET", f.theirs[i]).want(t, 200)
		if theirs.Header.Get("X-Cache") == "HIT" || !bytes.Equal(mine.Body, theirs.Body) {
			t.Errorf("%s: %s", f.theirs[i], theirs.Header.Get("X-Cache"))
		}
		// One tenant's path with any part of the other's.
		a, b := strings.Split(cdnPath(u), "/"), strings.Split(cdnPath(f.theirs[i]), "/")
		for n := 1; n < 5; n++ {
			mixed := slices.Clone(a)
			mixed[n] = b[n]
			if a[n] == b[n] {
				continue // the kind of picture
			}
			path := strings.Join(mixed, "/")
			if got := f.edge(t, "GET", path+"?"+strings.Join(params(u), "&")); got.Status != 403 {
				t.Errorf("%s with the signature of %s: status %d", path, cdnPath(u), got.Status)
			}
			f.unknownAtOrigin(t, path)
		}
		// Headers outside the cache key change neither the response nor what is cached.
		for _, h := range [][]string{{"X-Forwarded-Host", "two.test"}, {"X-Forwarded-Proto", "https"}, {"Origin", "https://evil.example"}, {"X-Rewrite-Url", "/x"},
			{"X-Original-Url", "/x"}, {"Cookie", "auth_token=x"}, {"Accept-Encoding", "gzip, br"}, {"If-None-Match", "*"}, {"If-Range", "x"}, {"X-Http-Method-Override", "DELETE"}} {
			got := f.edge(t, "GET", u, h...)
			if got.Status != 200 && got.Status != 304 || (got.Status == 200 && !bytes.Equal(got.Body, mine.Body)) || got.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s with %v: %d, %v", cdnPath(u), h, got.Status, got.Header)
			}
		}
		part := f.edge(t, "GET", u, "Range", "bytes=10-19")
		if part.Status != 206 || !bytes.Equal(part.Body, mine.Body[10:20]) {
			t.Errorf("%s: a range is %d with %d bytes", cdnPath(u), part.Status, len(part.Body))
		}
		if head := f.edge(t, "HEAD", u).want(t, 200); len(head.Body) != 0 || head.Length != int64(len(mine.Body)) {
			t.Errorf("%s: HEAD announces %d", cdnPath(u), head.Length)
		}
		// Other spellings of the path are not signed, and would not be found.
		for _, path := range []string{cdnPath(u) + ";.css", cdnPath(u) + "/", cdnPath(u) + "/.css", cdnPath(u) + "%2f", "/" + cdnPath(u), strings.Replace(cdnPath(u), "/page/", "//page/", 1) + "/",
			strings.ToUpper(cdnPath(u)), "/x/.." + cdnPath(u), "/." + cdnPath(u), strings.Replace(cdnPath(u), "-", "%2d", 1), cdnPath(u) + "%00", cdnPath(u) + "%3fx"} {
			if got := f.edge(t, "GET", path+"?"+strings.Join(params(u), "&")); got.Status != 403 && got.Status != 400 {
				t.Errorf("%s: status %d", path, got.Status)
			}
			f.unknownAtOrigin(t, path)
		}
	}
}

// unknownAtOrigin requests a path from the media function as the CDN does. The path must not exist.
func (f *filled) unknownAtOrigin(t *testing.T, path string) {
	t.Helper()
	req, err := http.NewRequest("GET", f.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = "/cdn" + path
	req.Header.Set("X-Origin-Secret", f.cdn.Config.Origin.Secrets[0])
	srv := httptest.NewServer(f.media.Router)
	defer srv.Close()
	req.URL.Host = strings.TrimPrefix(srv.URL, "http://")
	res, err := plain.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 404 && res.StatusCode != 400 {
		t.Errorf("the origin answers %s with %d, want 404", path, res.StatusCode)
	}
}

// The origin accepts only the CDN, and errors are not cached.
func TestOrigin(t *testing.T) {
	t.Parallel()
	f := newFilled(t)
	path := cdnPath(f.urls[0])
	good := f.cdn.Config.Origin.Secrets[0]
	for _, secret := range []string{"", good[:len(good)-1], good + "x", strings.ToUpper(good), "origin"} {
		r := httptest.NewRequest("GET", "/cdn"+path, nil)
		r.Header.Set("X-Origin-Secret", secret)
		r.Header.Set("Authorization", f.one.Header.Get("Authorization"))
		w := httptest.NewRecorder()
		f.toMedia.ServeHTTP(w, r)
		if w.Code != 403 {
			t.Errorf("secret %q: status %d", secret, w.Code)
		}
	}
	// The CDN caches a response for everybody, so it is complete and in one form, whatever one client requests.
	for _, u := range f.urls {
		for _, header := range [][2]string{{"If-None-Match", "*"}, {"If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}, {"Range", "bytes=0-9"}, {"Accept-Encoding", "gzip"}} {
			r := httptest.NewRequest("GET", "/cdn"+cdnPath(u), nil)
			r.Header.Set("X-Origin-Secret", good)
			r.Header.Set(header[0], header[1])
			w := httptest.NewRecorder()
			f.toMedia.ServeHTTP(w, r)
			if whole := f.edge(t, "GET", u).want(t, 200); w.Code != 200 || w.Header().Get("Content-Encoding") != "" || !bytes.Equal(w.Body.Bytes(), whole.Body) {
				t.Errorf("%s with %s: status %d, %d bytes %s, want %d", cdnPath(u), header[0], w.Code, w.Body.Len(), w.Header().Get("Content-Encoding"), len(whole.Body))
			}
		}
	}
	// Errors are not cached: each request for a page that cannot be rendered, for a missing page or for a deleted book
	// reaches the function.
	broken := f.location(t, f.one, pageURL(f.book, 3)+"?width=150")
	for range 2 {
		a := f.edge(t, "GET", broken)
		if a.Status != 422 || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("a broken page: %d, Cache-Control %q", a.Status, a.Header.Get("Cache-Control"))
		}
	}
	if n := f.cdn.Asked(cdnPath(broken)); n != 2 {
		t.Errorf("an error was asked for twice and reached the function %d times", n)
	}
	// A suspended tenant gets no new addresses, and the CDN gets nothing more for this tenant.
	fresh := f.location(t, f.one, pageURL(f.book, 3)) // signed, but not in the cache
	f.exec("update tenant set status = 'suspended' where id = $1", f.One)
	testkit.Eventually(t, 15*time.Second, func() bool { return f.fetch(t, f.one, "GET", pageURL(f.book, 1)).Status == 403 })
	testkit.Eventually(t, 15*time.Second, func() bool { return f.atOriginStatus(cdnPath(fresh)) == 403 })
	if a := f.edge(t, "GET", fresh); a.Status != 403 || a.Header.Get("Cache-Control") != "no-store" || !bytes.Contains(a.Body, []byte("suspended")) {
		t.Errorf("a suspended tenant's page: %d, Cache-Control %q: %s", a.Status, a.Header.Get("Cache-Control"), a.Body)
	}
	f.fetch(t, f.one, "GET", "/api/v1/books/"+f.book.ID.String()+"/pages/address").problem(t, 403)
	f.exec("update tenant set status = 'active' where id = $1", f.One)
	testkit.Eventually(t, 15*time.Second, func() bool { return f.edge(t, "GET", fresh).Status == 200 })
	f.exec("delete from book where tenant_id = $1", f.Two)
	gone := strings.Replace(cdnPath(f.theirs[0]), "/original", "/600x.png", 1)
	testkit.Eventually(t, 15*time.Second, func() bool { return f.atOriginStatus(gone) == 404 })
}

// atOriginStatus returns the status that all processes of the function return, or 0 while they differ: each has its own
// memory.
func (f *filled) atOriginStatus(path string) int {
	answers := make(chan int, instances)
	for range instances { // at once, so that no process answers twice
		go func() {
			r := httptest.NewRequest("GET", "/cdn"+path, nil)
			r.Header.Set("X-Origin-Secret", f.cdn.Config.Origin.Secrets[0])
			w := httptest.NewRecorder()
			f.toMedia.ServeHTTP(w, r)
			answers <- w.Code
		}()
	}
	status := <-answers
	for range instances - 1 {
		if <-answers != status {
			status = 0
		}
	}
	return status
}

// lines collects the program's log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Neither the log of a function nor that of the edge contains signatures or the origin's secret. Not parallel: the log
// belongs to the process.
func TestSignaturesAreNotLogged(t *testing.T) {
	var out lines
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	f := newFilled(t)
	f.edge(t, "GET", f.urls[0]+"x")
	f.edge(t, "GET", bare(f.urls[0])+"?Signature=secret")
	f.fetch(t, f.one, "GET", "/api/v1/books/"+f.book.ID.String()+"/pages/address?Signature=secret").want(t, 200)
	out.mu.Lock()
	defer out.mu.Unlock()
	logged := out.text.String() + f.log.String() + strings.Join(f.cdn.Log(t), "\n")
	if n := strings.Count(logged, `"status":302`); n < len(f.urls) {
		t.Fatalf("only %d redirections in the log: %.500s", n, logged)
	}
	for _, secret := range []string{"Signature", "Key-Pair-Id", "Policy", "secret", f.cdn.Config.Origin.Secrets[0]} {
		if strings.Contains(logged, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// From an address, nobody can guess an address of another tenant: its MAC depends on the tenant's secret.
func TestAddressesCannotBeGuessed(t *testing.T) {
	t.Parallel()
	f := newFilled(t)
	macs := map[string]bool{}
	for i := range f.urls {
		for _, u := range []string{f.urls[i], f.theirs[i]} {
			macs[strings.Split(cdnPath(u), "/")[3]+strings.Split(cdnPath(u), "/")[4]] = true
		}
	}
	if len(macs) != 4 { // pages and cover, of two tenants
		t.Errorf("%d macs", len(macs))
	}
	for _, mac := range []string{strings.Repeat("0", 32), "", uuid.NewString()} {
		f.unknownAtOrigin(t, fmt.Sprintf("/page/%s/%s/%s/1/original", f.One, f.book.ID, mac))
		f.unknownAtOrigin(t, fmt.Sprintf("/%s/cover/%s/%s/400-85.jpeg", f.One, f.book.ID, mac))
	}
}
