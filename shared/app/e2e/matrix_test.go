package e2e_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// matrix calls every operation as every kind of caller.
type matrix struct {
	*system
	book  book
	known map[string]string // user names, by host
	n     int

	tagged, someone, asker string // a sharing tag, a user and a plugin
}

// caller is a kind of caller with its expected statuses.
type caller struct {
	kind   string
	client *testkit.Client
	// wants returns the expected status of an operation. success is the status of its entry.
	wants func(op *httpapi.Op, success int) int
}

func newMatrix(t *testing.T) *matrix {
	m := &matrix{system: newSystem(t, links{}), known: map[string]string{}}
	m.exec("insert into setting (tenant_id, key, value) select id, 'auth.registration_enabled', 'true' from tenant")
	m.exec("insert into setting (tenant_id, key, value) select id, 'komga_api.prefix', 'komga' from tenant")
	m.exec("insert into setting (tenant_id, key, value) select id, 'koreader_api.enabled', 'true' from tenant")
	admin := m.as("admin")
	testkit.WriteFile(t, m.folder, "Geheim/Geheim 1.cbz", testkit.Comic(t, 1, 2, "<Title>Geheim</Title>"))
	m.scan(admin, m.system.library(admin, "Geheim", ""))
	m.book = m.books(admin)["Geheim/Geheim 1.cbz"]
	m.tagged, m.someone, m.asker = m.sharingTag(admin), m.user(admin), m.plugin(admin)
	m.known["one.test"], m.known["two.test"] = admin.Name, m.User(t, "two", "admin").Name
	return m
}

func holds(permissions []string) func(op *httpapi.Op, success int) int {
	return func(op *httpapi.Op, success int) int {
		if op.Permission == httpapi.Public || op.Permission == httpapi.SignedIn || slices.Contains(permissions, op.Permission) {
			return success
		}
		return 403
	}
}

func nobody(op *httpapi.Op, success int) int {
	if op.Permission == httpapi.Public {
		return success
	}
	return 401
}

func (m *matrix) callers(t *testing.T) []caller {
	admin := m.as("admin")
	disabled := m.as("admin")
	m.exec("update account set is_active = false where id = $1", disabled.ID)
	stranger := m.User(t, "two", "admin")
	stranger.Host = "one.test" // a token of another tenant
	cookie := m.as("admin")
	cookie.Header = http.Header{"Cookie": {httpapi.SessionCookie + "=" + strings.TrimPrefix(cookie.Header.Get("Authorization"), "Bearer ")}}
	return []caller{
		{"anonymous", m.Anonymous(t, "one"), nobody},
		{"reader", m.as("reader"), holds(auth.RolePermissions(auth.Reader))},
		{"maintainer", m.as("maintainer"), holds(auth.RolePermissions(auth.Maintainer))},
		{"admin", admin, holds(auth.AllPermissions())},
		{"disabled admin", disabled, nobody},
		{"admin's API key without permissions", m.Key(t, admin), holds(nil)},
		{"another tenant's token", stranger, nobody},
		{"admin's session cookie", cookie, func(op *httpapi.Op, success int) int {
			if op.Permission == httpapi.Public || op.Cookie {
				return success
			}
			return 401
		}},
	}
}

func (m *matrix) all() []*httpapi.Op {
	return slices.Concat(m.system.api.Operations, m.system.media.Operations)
}

// call prepares what the operation needs and calls it.
func (m *matrix) call(op *httpapi.Op, e entry, c *testkit.Client, owner *testkit.Client) *testkit.Response {
	name := ""
	if e.name != nil {
		name = e.name(m, owner)
	}
	return m.callNamed(op, e, c, name)
}

func (m *matrix) callNamed(op *httpapi.Op, e entry, c *testkit.Client, name string) *testkit.Response {
	name, second, _ := strings.Cut(name, "|") // a thing inside another one
	if second == "" {
		second = uuid.NewString()
	}
	path := strings.NewReplacer("{prefix}", "komga", "{id}", name, "{pluginId}", name, "{externalId}", name, "{name}", name, "{uploadId}", second, "{readingId}", second, "{memberId}", second, "{termId}", second, "{coverId}", second, "{referenceId}", second, "{tagId}", second, "{userId}", second, "{jobId}", second, "{mappingId}", second, "{provider}", name, "{key}", name, "{document}", name, "{pageNumber}", "1", "{path}", "a/b.xhtml").Replace(op.Path)
	if e.query != "" {
		path += "?" + strings.ReplaceAll(e.query, "{second}", second)
	}
	var body any
	if e.body != nil {
		body = e.body(m, c)
	}
	return c.Do(op.Method, path, body)
}

func success(e entry) int {
	if e.status == 0 {
		return 200
	}
	return e.status
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	callers := m.callers(t)
	admin := callers[3].client
	seen := map[string]bool{}
	for _, op := range m.all() {
		seen[op.ID] = true
		e, ok := operations[op.ID]
		if !ok {
			t.Errorf("%s (%s %s) has no entry in the matrix: add one to operations", op.ID, op.Method, op.Path)
			continue
		}
		for _, c := range callers {
			owner := c.client
			if owner.Tenant != m.One {
				owner = admin
			}
			r := m.call(op, e, c.client, owner)
			if want := c.wants(op, success(e)); r.Status != want {
				t.Errorf("%s by %s: status %d, want %d: %.200s", op.ID, c.kind, r.Status, want, r.Body)
			}
			// HTML operations return a page for people.
			if r.Status >= 400 && r.Header.Get("Content-Type") != "application/json" && op.Media != "text/html" {
				t.Errorf("%s by %s: an error as %s", op.ID, c.kind, r.Header.Get("Content-Type"))
			}
			if r.Status >= 400 && r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s by %s: a cache may keep the error %d", op.ID, c.kind, r.Status)
			}
			// A caller without permission does not learn what is wrong with the input.
			if want := c.wants(op, 0); e.body != nil && want != 0 {
				broken := e
				broken.body = value(`{"broken":`)
				if r := m.call(op, broken, c.client, owner); r.Status != want {
					t.Errorf("%s by %s with a broken body: status %d, want %d", op.ID, c.kind, r.Status, want)
				}
			}
		}
	}
	for id := range operations {
		if !seen[id] {
			t.Errorf("the matrix has an entry for %s, which is no operation", id)
		}
	}
}

// Another tenant's administrator uses this tenant's ids: each operation returns 404 as for unknown ids, no response
// contains anything of this tenant, and none of its rows change.
func TestMatrixOtherTenant(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	ours, theirs := m.as("admin"), m.User(t, "two", "admin")
	names := map[string]string{}
	for _, op := range m.all() {
		if e := operations[op.ID]; e.name != nil {
			owner := ours
			if e.shared {
				owner = theirs
			}
			names[op.ID] = e.name(m, owner)
		}
	}
	secrets := []string{"Geheim", m.One.String(), m.book.ID.String(), m.book.SeriesID.String(), m.book.LibraryID.String(), ours.ID.String(), ours.Name}
	before := m.snapshot(t)
	for _, op := range m.all() {
		e, want := operations[op.ID], success(operations[op.ID])
		switch {
		case e.foreign != 0:
			want = e.foreign
		case e.name != nil && !e.shared:
			want = 404
		}
		if op.ID == "updateSetting" || op.ID == "updateSettings" { // the caller's own value, not this tenant's
			e.body = value(object{"value": "Theirs", "settings": object{"application.name": "Theirs"}})
		}
		r := m.callNamed(op, e, theirs, names[op.ID])
		if r.Status != want {
			t.Errorf("%s: status %d, want %d: %.200s", op.ID, r.Status, want, r.Body)
		}
		for _, s := range secrets {
			if bytes.Contains(r.Body, []byte(s)) && op.ID != "createLibrary" && op.ID != "browseFilesystem" {
				t.Errorf("%s tells another tenant %q: %.300s", op.ID, s, r.Body)
			}
		}
		if want == 404 {
			unknown := m.callNamed(op, e, theirs, uuid.NewString())
			if unknown.Status != r.Status || !bytes.Equal(unknown.Body, r.Body) {
				t.Errorf("%s: a foreign id (%s) is told from an unknown one (%s)", op.ID, r.Body, unknown.Body)
			}
		}
	}
	after := m.snapshot(t)
	for table, rows := range before {
		if after[table] != rows {
			t.Errorf("another tenant's requests changed our rows of %s", table)
		}
	}
}

// snapshot returns a fingerprint of tenant one's rows, by table.
func (m *matrix) snapshot(t *testing.T) map[string]string {
	t.Helper()
	ctx, pool := context.Background(), m.DB.Owner.Pool()
	var tables []string
	if err := pool.QueryRow(ctx, `select array_agg(c.relname::text) from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relkind in ('r', 'p') and a.attname = 'tenant_id' and not a.attisdropped`).Scan(&tables); err != nil || len(tables) < 20 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	out := map[string]string{}
	for _, table := range tables {
		var sum string
		if err := pool.QueryRow(ctx, "select count(*) || ' ' || coalesce(md5(string_agg(r::text, '' order by r::text)), '') from "+table+" r where tenant_id = $1", m.One).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		out[table] = sum
	}
	return out
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	reader, anonymous := s.as("reader"), s.Anonymous(t, "one")
	for _, c := range [][2]string{{"GET", "/api/v1/nothing"}, {"GET", "/api/v1/books/1/2/3/4"}, {"POST", "/api/v1/books"}, {"DELETE", "/api/v1/books"}, {"GET", "/api/v2/books"},
		{"GET", "/api/v1/admin"}, {"PUT", "/api/v1/libraries"}, {"GET", "/api/"}, {"TRACE", "/api/v1/books"}, {"GET", "/api/v1//books"}} {
		s.fetch(t, anonymous, c[0], c[1]).problem(t, 401)
		s.fetch(t, reader, c[0], c[1]).problem(t, 404)
	}
	stray := *reader
	stray.Host = "unknown.example"
	for _, path := range []string{"/api/v1/books", "/api/v1/setup/status"} {
		s.fetch(t, &stray, "GET", path).problem(t, 404)
	}
}

// Filters with another tenant's ids find nothing. Together with the caller's own ids they find only the caller's
// things.
func TestForeignIDsInFilters(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	theirs := m.User(t, "two", "admin")
	m.exec("insert into library_root (tenant_id, path, bucket) values ($1, '/books', 'books')", m.Two)
	own := m.system.library(theirs, "Theirs", "")
	m.scan(theirs, own)
	var mine list[book]
	theirs.Do("GET", "/api/v1/books", nil).Want(200).JSON(&mine)
	if mine.Total != 1 || mine.Data[0].LibraryID != own {
		t.Fatalf("their own books: %+v", mine)
	}
	foreign := m.book
	is := func(field, id string) object { return object{field: object{"operator": "is", "value": id}} }
	for _, c := range []struct {
		method, path string
		body         any
		total        int64
	}{
		{"GET", "/books?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/books?seriesId=" + foreign.SeriesID.String(), nil, 0},
		{"GET", "/books?library_id=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/books?libraryId=" + own.String() + "&seriesId=" + foreign.SeriesID.String(), nil, 0},
		{"GET", "/books?libraryId=" + foreign.LibraryID.String() + "&seriesId=" + mine.Data[0].SeriesID.String(), nil, 0},
		{"GET", "/books/in-progress?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/books/on-deck?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/books/recently-read?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/books/recently-added?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/series?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/series/recently-added?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/series/recently-updated?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/series/in-progress?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"GET", "/tasks?libraryId=" + foreign.LibraryID.String(), nil, 0},
		{"POST", "/books/list", object{"condition": is("libraryId", foreign.LibraryID.String())}, 0},
		{"POST", "/books/list", object{"condition": is("seriesId", foreign.SeriesID.String())}, 0},
		{"POST", "/series/list", object{"condition": is("libraryId", foreign.LibraryID.String())}, 0},
		{"POST", "/books/list", object{"condition": object{"allOf": []any{is("libraryId", own.String()), is("seriesId", foreign.SeriesID.String())}}}, 0},
		{"POST", "/books/list", object{"condition": object{"anyOf": []any{is("libraryId", own.String()), is("libraryId", foreign.LibraryID.String())}}}, 1},
		{"POST", "/series/list", object{"condition": object{"anyOf": []any{is("libraryId", own.String()), is("libraryId", foreign.LibraryID.String())}}}, 1},
		{"POST", "/books/list", object{"condition": object{"libraryId": object{"operator": "isNot", "value": own.String()}}}, 0},
	} {
		var got list[book]
		r := theirs.Do(c.method, "/api/v1"+c.path, c.body)
		if r.Status != 200 {
			t.Errorf("%s %s %v: status %d: %s", c.method, c.path, c.body, r.Status, r.Body)
			continue
		}
		if r.JSON(&got); got.Total != c.total || int64(len(got.Data)) != c.total || bytes.Contains(r.Body, []byte(foreign.ID.String())) {
			t.Errorf("%s %s %v: total %d, %d items, want %d: %.300s", c.method, c.path, c.body, got.Total, len(got.Data), c.total, r.Body)
		}
	}
}
