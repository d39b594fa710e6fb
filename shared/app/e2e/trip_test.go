package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// Round trips to Postgres of a warm request, counted on the wire, without those that depend on the clock: the cached
// tenant expires every five seconds. Not parallel, so that no other test takes a warm connection.
func TestRoundTrips(t *testing.T) {
	var l *link
	s := newSystem(t, links{database: func(u string) string { var via string; l, via = newLink(t, u, true); return via }})
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	admin, reader := s.as("admin"), s.as("reader")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Comic(t, 1, 3, "<Title>T</Title>"))
	testkit.WriteFile(t, s.folder, "S/a 2.cbz", testkit.Comic(t, 2, 3, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	b, other := s.books(reader)["S/a 1.cbz"], s.books(reader)["S/a 2.cbz"]
	id, series, library := b.ID.String(), b.SeriesID.String(), b.LibraryID.String()
	key := s.Key(t, admin, "BooksRead")
	var made struct{ ID string }
	admin.Do("POST", "/api/v1/collections", object{"name": "Shelf"}).Want(201).JSON(&made)
	shelf := made.ID
	admin.Do("POST", "/api/v1/series/"+series+"/aliases", object{"alias": "S"}).Want(201)
	s.exec(`insert into plugin (tenant_id, id, name, display_name, plugin_type, command, credential_delivery, enabled, use_existing_external_id)
		values ($1, gen_random_uuid(), 'test', 'Test', 'system', 'node', 'env', false, true)`, s.One)
	config := `{"type":"metadata_refresh","provider":"test"}`
	admin.Do("POST", "/api/v1/libraries/"+library+"/jobs", `{"cronSchedule":"0 3 * * *","config":`+config+`}`).Want(201).JSON(&made)
	job := "/libraries/" + library + "/jobs/" + made.ID
	s.exec("insert into setting (tenant_id, key, value) values ($1, 'exports.max_concurrent_per_user', '10')", s.One)
	var asked struct{ ID string }
	reader.Do("POST", "/api/v1/user/exports/series", `{"format":"csv"}`).Want(201).JSON(&asked)
	kept, began := l.others.Load(), time.Now()
	for _, c := range []struct {
		client             *testkit.Client
		method, path, body string
		most               int64 // warm
	}{
		{reader, "GET", "/books", "", 1},
		{key, "GET", "/books", "", 1},
		{reader, "GET", "/books?libraryId=" + library + "&sort=title,desc&page=2&pageSize=1", "", 1},
		{reader, "GET", "/books/" + id, "", 1},
		{reader, "GET", "/books/" + id + "/pages", "", 1},
		{reader, "GET", "/books/errors?errorType=killed", "", 1},
		{reader, "GET", "/duplicates/series?matchType=title", "", 1},
		{reader, "GET", "/books/in-progress", "", 1},
		{reader, "GET", "/books/in-progress?sort=title", "", 1},
		{reader, "GET", "/books/errors?sort=title", "", 1},
		{reader, "GET", "/books/on-deck", "", 1},
		{reader, "GET", "/books/recently-read", "", 1},
		{reader, "GET", "/books/recently-added", "", 1},
		{reader, "GET", "/books/" + id + "/adjacent", "", 1},
		{reader, "GET", "/libraries/" + library + "/books?sort=number,desc", "", 1},
		{reader, "GET", "/libraries/" + library + "/books/in-progress", "", 1},
		{reader, "GET", "/libraries/" + library + "/books/on-deck?sort=number,desc", "", 1},
		{reader, "GET", "/libraries/" + library + "/books/recently-added", "", 1},
		{reader, "GET", "/libraries/" + library + "/books/recently-read", "", 1},
		{reader, "GET", "/libraries/" + library + "/series", "", 1},
		{reader, "GET", "/libraries/" + library + "/series/in-progress", "", 1},
		{reader, "GET", "/libraries/" + library + "/series/recently-added", "", 1},
		{reader, "GET", "/libraries/" + library + "/series/recently-updated", "", 1},
		{reader, "POST", "/books/list", `{"condition":{"libraryId":{"operator":"is","value":"` + library + `"}}}`, 1},
		{reader, "POST", "/books/list", `{"fullTextSearch":"t"}`, 1},
		{reader, "POST", "/series/search", `{"query":"s"}`, 1},
		{reader, "GET", "/series", "", 1},
		{reader, "GET", "/series?genres=action,drama&tags=space", "", 1},
		{reader, "GET", "/series/" + series, "", 1},
		{reader, "GET", "/series/full?libraryId=" + library, "", 1},
		{reader, "GET", "/series?full=true", "", 1},
		{reader, "GET", "/books?full=true&sort=series", "", 1},
		{reader, "GET", "/series/" + series + "/books?full=true&sort=release_date", "", 1},
		{reader, "GET", "/series/external-index", "", 1},
		{reader, "GET", "/series/in-progress?sort=date_read", "", 1},
		{reader, "GET", "/series/" + series + "/books", "", 1},
		{reader, "GET", "/series/" + series + "/books?sort=title", "", 1},
		{reader, "GET", "/libraries", "", 1},
		{reader, "GET", "/libraries/" + library, "", 1},
		{reader, "GET", "/libraries/" + library + "/scan-status", "", 1},
		{reader, "GET", "/libraries/" + library + "/jobs", "", 1},
		{reader, "GET", job, "", 1},
		{reader, "GET", "/library-jobs/metadata-refresh/field-groups", "", 1},
		{admin, "PATCH", job, `{"config":` + config + `}`, 2},
		{reader, "GET", "/scans/active", "", 1},
		{reader, "GET", "/books/" + id + "/progress", "", 1},
		{reader, "GET", "/books/" + id + "/progression", "", 1},
		{reader, "GET", "/progress", "", 1},
		{reader, "GET", "/books/" + id + "/full", "", 1},
		{reader, "GET", "/series/" + series + "/full", "", 1},
		{reader, "GET", "/books/" + id + "/read-history", "", 1},
		{reader, "GET", "/series/" + series + "/read-history", "", 1},
		{reader, "GET", "/user/preferences", "", 1},
		{reader, "GET", "/auth/me", "", 1},
		{reader, "GET", "/auth/oidc/providers", "", 1},
		{reader, "GET", "/user", "", 1},
		{reader, "GET", "/api-keys", "", 1},
		{reader, "GET", "/settings/public", "", 1},
		{admin, "GET", "/admin/settings", "", 1},
		{admin, "GET", "/users", "", 1},
		{admin, "GET", "/tasks", "", 1},
		{admin, "GET", "/tasks/stats", "", 1},
		{admin, "GET", "/metrics", "", 1},
		{reader, "GET", "/metrics/inventory", "", 1},
		{reader, "GET", "/metrics/tasks", "", 1},
		{reader, "GET", "/metrics/tasks/history?granularity=day", "", 1},
		{admin, "GET", "/filesystem/drives", "", 1},
		{admin, "GET", "/admin/pdf-cache", "", 1},
		{admin, "GET", "/admin/pdf-cache/handles", "", 1},
		{admin, "POST", "/admin/cleanup-orphans", "", 2},
		{admin, "GET", "/filesystem/browse?path=/books", "", 1},
		{reader, "GET", "/books/" + id + "/thumbnail", "", 1},
		{reader, "GET", "/series/" + series + "/thumbnail", "", 1},
		{reader, "GET", "/libraries/" + library + "/thumbnail", "", 1},
		{reader, "GET", "/opds", "", 1},
		{reader, "GET", "/opds/libraries", "", 1},
		{reader, "GET", "/opds/libraries/" + library, "", 1},
		{reader, "GET", "/opds/v2/series/" + series, "", 1},
		{reader, "GET", "/opds/v2/recent", "", 1},
		{reader, "GET", "/opds/collections/" + shelf, "", 1},
		{reader, "GET", "/opds/search?q=t", "", 1},
		{reader, "GET", "/opds/books/" + id + "/pages", "", 1},
		{reader, "GET", "/opds/books/" + other.ID.String() + "/pages/2", "", 2}, // the second writes progress
		{reader, "GET", "/komga/api/v1/series?search=s&library_id=" + library, "", 1},
		{reader, "GET", "/komga/api/v1/series/" + series, "", 1},
		{reader, "GET", "/komga/api/v1/series/" + series + "/books?unpaged=true", "", 1},
		{reader, "GET", "/komga/api/v1/books/ondeck", "", 1},
		{reader, "GET", "/komga/api/v1/books/" + id + "/next", "", 1},
		{reader, "GET", "/komga/api/v1/books/" + id + "/pages", "", 1},
		{reader, "GET", "/komga/api/v1/libraries", "", 1},
		{reader, "GET", "/komga/api/v2/authors", "", 1},
		{reader, "GET", "/komga/api/v2/users/me", "", 1},
		{reader, "GET", "/komga/api/v1/series/" + series + "/thumbnail", "", 1},
		{reader, "PATCH", "/komga/api/v1/books/" + id + "/read-progress", `{"page":2}`, 2},
		{reader, "PUT", "/books/" + id + "/progress", `{"currentPage":2}`, 2},
		{reader, "PUT", "/books/" + id + "/progression", `{"locator":{"href":"a","locations":{"totalProgression":0.5}}}`, 2},
		{reader, "POST", "/books/" + id + "/read", "", 2},
		{reader, "DELETE", "/books/" + id + "/progress", "", 2},
		{reader, "POST", "/reading-sessions", `{"sessions":[{"id":"` + uuid.NewString() + `","bookId":"` + id + `","deviceId":"d","kind":"completed","clientStartedAt":"2024-05-01T00:00:00Z","clientEndedAt":"2024-05-01T01:00:00Z"}]}`, 2},
		{reader, "POST", "/want-to-read/bulk", `{"seriesIds":["` + series + `"],"bookIds":["` + id + `"]}`, 2},
		{reader, "GET", "/want-to-read?sort=custom", "", 1},
		{reader, "PUT", "/want-to-read/order", `{"ids":[]}`, 2},
		{reader, "DELETE", "/want-to-read/series/" + series, "", 2},
		{reader, "GET", "/user/exports/series", "", 1},
		{reader, "GET", "/user/exports/series/" + asked.ID, "", 1},
		{reader, "POST", "/user/exports/series", `{"format":"json","exportType":"both"}`, 2},
		{reader, "GET", "/genres", "", 1},
		{reader, "GET", "/series/" + series + "/tracking", "", 1},
		{reader, "GET", "/series/" + series + "/aliases", "", 1},
		{reader, "GET", "/series/" + series + "/releases", "", 1},
		{reader, "GET", "/releases?libraryId=" + library, "", 1},
		{reader, "GET", "/releases/facets", "", 1},
		{reader, "GET", "/release-sources/applicability?libraryId=" + library, "", 1},
		{admin, "GET", "/release-sources", "", 1},
		{admin, "PATCH", "/series/" + series + "/tracking", `{"tracked":true}`, 2},
		{admin, "POST", "/series/" + series + "/aliases", `{"alias":"S"}`, 2},
		{admin, "POST", "/releases/bulk", `{"action":"dismiss","ids":["` + id + `"]}`, 2},
		{reader, "GET", "/collections", "", 1},
		{reader, "GET", "/readlists", "", 1},
		{reader, "GET", "/collections/" + shelf + "/series", "", 1},
		{reader, "GET", "/series/" + series + "/collections", "", 1},
		{admin, "POST", "/collections/" + shelf + "/series", `{"seriesIds":["` + series + `"]}`, 2},
		{reader, "GET", "/collections/" + shelf + "/thumbnail", "", 1},
		{admin, "PUT", "/collections/" + shelf + "/series", `{"seriesIds":["` + series + `"]}`, 2},
		{admin, "PATCH", "/collections/" + shelf, `{"summary":"s"}`, 2},
		{reader, "PUT", "/user/preferences/reader.theme", `{"value":"dark"}`, 2},
		{reader, "POST", "/series/" + series + "/read", "", 2},
		{reader, "DELETE", "/books/" + id + "/read-history", "", 2},
		{reader, "DELETE", "/series/" + series + "/read-history", "", 2},
		{reader, "DELETE", "/user/read-history", "", 2},
		{reader, "POST", "/series/bulk/unread", `{"seriesIds":["` + series + `"]}`, 2},
		{reader, "POST", "/books/bulk/read", `{"bookIds":["` + id + `"]}`, 2},
		{reader, "GET", "/series/" + series + "/metadata", "", 1},
		{admin, "PATCH", "/books/" + id + "/metadata", `{"summary":"s"}`, 2},
		{admin, "PATCH", "/series/" + series + "/metadata", `{"summary":"s"}`, 2},
		{admin, "PUT", "/series/" + series + "/metadata/locks", `{"summary":true}`, 2},
		// If tasks travel through a queue, the second round trip selects the tasks to send.
		{admin, "POST", "/books/" + id + "/analyze", "", 2},
		{admin, "POST", "/books/bulk/analyze", `{"bookIds":["` + id + `"],"force":true}`, 2},
		{admin, "POST", "/series/" + series + "/analyze", "", 2},
		{admin, "POST", "/series/bulk/analyze", `{"seriesIds":["` + series + `"],"force":true}`, 2},
		{admin, "POST", "/series/bulk/renumber", `{"seriesIds":["` + series + `"]}`, 2},
		{admin, "POST", "/libraries/" + library + "/analyze", "", 2},
		{admin, "POST", "/series/" + series + "/thumbnail/generate", "", 2},
		{admin, "POST", "/books/bulk/thumbnails/generate", `{"bookIds":["` + id + `"]}`, 2},
	} {
		call := func() int64 {
			var body any
			if c.body != "" {
				body = c.body
			}
			path := c.path
			if !strings.HasPrefix(path, "/opds") && !strings.HasPrefix(path, "/komga") {
				path = "/api/v1" + path
			}
			return l.cost(func() {
				if r := c.client.Do(c.method, path, body); r.Status != 200 && r.Status != 201 && r.Status != 204 {
					t.Fatalf("%s %s: status %d: %s", c.method, c.path, r.Status, r.Body)
				}
			})
		}
		call() // opens connections and describes statements
		call()
		if got := []int64{call(), call()}; slices.Max(got) > c.most || slices.Min(got) < 1 {
			t.Errorf("%s %s: %v round trips, want 1 to %d", c.method, c.path, got, c.most)
		}
	}
	// Two functions query once in five seconds. If each request did so, it would be about two hundred queries.
	if n, most := l.others.Load()-kept, 4+3*int64(time.Since(began)/time.Second); n > most {
		t.Errorf("the programs asked %d times for what they remember, want at most %d", n, most)
	}
	s.fetch(t, reader, "GET", pageURL(other, 1)).want(t, 200) // describes the statement
	var warm []int64
	for n := range 6 {
		warm = append(warm, l.cost(func() { s.fetch(t, reader, "GET", pageURL(other, 1+n%3)).want(t, 200) }))
	}
	// On a busy machine Redis may answer too late once, and then no cached data is used.
	if slices.Min(warm) != 0 || slices.Max(warm) > 1 || warm[5] != 0 && warm[4] != 0 {
		t.Errorf("warm pages cost %v round trips, want none", warm)
	}
	// The statements are known, but the index is not cached.
	if got := l.cost(func() { s.fetch(t, reader, "GET", pageURL(b, 1)).want(t, 200) }); got != 1 {
		t.Errorf("a page of a book not seen yet: %d round trips, want 1", got)
	}
}
