package sharing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/sharing"
	"github.com/longbox/longbox/shared/domain/upload"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const base = "/api/v1"

// rig is a server that counts bumps and events of series, and records who must reload.
type rig struct {
	*testkit.Server
	t       *testing.T
	bumps   atomic.Int32
	updates atomic.Int32
	mu      sync.Mutex
	reloads []string // users; empty for all
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t}
	publish := func(_ context.Context, _ uuid.UUID, all ...events.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range all {
			if e.Kind == "resync" {
				r.reloads = append(r.reloads, e.UserID)
			} else {
				r.updates.Add(1)
			}
		}
	}
	bump := func(context.Context, uuid.UUID) { r.bumps.Add(1) }
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		sharing.Routes(a, d, publish, bump)
		series.Routes(a, d, nil, nil)
		book.Routes(a, d, nil, nil)
		library.Routes(a, d, publish, nil, nil, bump, (&upload.Uploader{Database: d}).Abandon)
		account.Routes(a, d, testkit.Tokens(t), bump, nil, "")
	})
	return r
}

// told returns who was told to reload since the last call.
func (r *rig) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.reloads
	r.reloads = nil
	return out
}

// library adds a library with one series per title, each with one book.
func (r *rig) library(tenant uuid.UUID, titles ...string) (id uuid.UUID, ids map[string]string) {
	r.t.Helper()
	id, ids = uuid.New(), map[string]string{}
	r.DB.Exec(r.t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2::uuid, $2::text, '/' || $2::text, 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, id)
	for _, title := range titles {
		s := uuid.New()
		r.DB.Exec(r.t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
			values ($1, $2, $3, $4, $4, $4, $4, lower($4) || ' hare')`, tenant, s, id, title)
		r.DB.Exec(r.t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			values ($1, $2, $3, $4, $5, 10, now(), 'cbz', $5, $5, $5)`, tenant, uuid.New(), id, s, title+".cbz")
		ids[title] = s.String()
	}
	return id, ids
}

func (r *rig) tag(admin *testkit.Client, name string) string {
	r.t.Helper()
	return admin.Do("POST", base+"/admin/sharing-tags", map[string]any{"name": name}).Want(201).Map()["id"].(string)
}

func grant(tag, mode string) map[string]any {
	return map[string]any{"sharingTagId": tag, "accessMode": mode}
}

// titles returns the titles in a list response, with the total.
func titles(r *testkit.Response) string {
	var page struct {
		Data []struct {
			Title, Name, Username  string
			SeriesCount, BookCount *int
		}
		Total int
	}
	r.Want(200).JSON(&page)
	var out []string
	for _, d := range page.Data {
		switch {
		case d.Username != "":
			out = append(out, d.Username)
		case d.SeriesCount != nil && d.BookCount != nil:
			out = append(out, fmt.Sprintf("%d series and %d books", *d.SeriesCount, *d.BookCount))
		default:
			out = append(out, d.Title+d.Name)
		}
	}
	return strings.Join(out, " ") + fmt.Sprint(" of ", page.Total)
}

func TestWhoSeesWhat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	in, of := r.library(r.One, "Adult", "Both", "Kids", "Plain")
	kids, adult := r.tag(admin, "Kids"), r.tag(admin, "Adult")
	for title, tags := range map[string][]string{"Kids": {kids}, "Adult": {adult}, "Both": {adult, kids, adult}} {
		admin.Do("PUT", base+"/series/"+of[title]+"/sharing-tags", map[string]any{"sharingTagIds": tags}).Want(200)
	}
	for _, c := range []struct {
		own, group map[string]string // tags and modes
		sees       string
	}{
		{nil, nil, "Adult Both Kids Plain of 4"},
		{map[string]string{kids: "allow"}, nil, "Both Kids of 2"},
		{nil, map[string]string{kids: "allow"}, "Both Kids of 2"},
		{map[string]string{adult: "deny"}, nil, "Kids Plain of 2"},
		{map[string]string{kids: "allow", adult: "deny"}, nil, "Kids of 1"},
		{map[string]string{kids: "allow"}, map[string]string{adult: "deny"}, "Kids of 1"},
		{map[string]string{kids: "allow"}, map[string]string{adult: "allow"}, "Adult Both Kids of 3"},
		{map[string]string{kids: "allow"}, map[string]string{kids: "deny"}, " of 0"},
		{map[string]string{kids: "deny", adult: "deny"}, nil, "Plain of 1"},
	} {
		for _, role := range []string{"reader", "admin"} {
			u := r.User(t, "one", role)
			for tag, mode := range c.own {
				admin.Do("PUT", base+"/users/"+u.ID.String()+"/sharing-tags", grant(tag, mode)).Want(200)
			}
			if c.group != nil {
				group := base + "/access-groups/" + admin.Do("POST", base+"/access-groups", map[string]any{"name": u.Name}).Want(201).Map()["id"].(string)
				admin.Do("POST", group+"/members", map[string]any{"userIds": []string{u.ID.String()}}).Want(200)
				for tag, mode := range c.group {
					admin.Do("POST", group+"/grants", grant(tag, mode)).Want(200)
				}
			}
			seen, _, _ := strings.Cut(c.sees, " of ")
			n := len(strings.Fields(seen))
			books := strings.Join(strings.Fields(strings.ReplaceAll(seen+" ", " ", ".cbz ")), " ")
			if n == 0 {
				books = ""
			}
			for path, want := range map[string]string{
				"/series": c.sees, "/series?libraryId=" + in.String(): c.sees, "/series?sort=rating,desc": c.sees, "/series/recently-added?pageSize=2": "",
				"/books": books + fmt.Sprint(" of ", n), "/books?libraryId=" + in.String(): books + fmt.Sprint(" of ", n),
				"/libraries": fmt.Sprintf("%d series and %d books of 1", n, n),
			} {
				got := titles(u.Do("GET", base+path, nil))
				if want == "" {
					want = got[:strings.LastIndex(got, " of ")] + fmt.Sprint(" of ", n)
				}
				if got != want {
					t.Errorf("%v and %v, %s: %s, want %s", c.own, c.group, path, got, want)
				}
			}
			if got := titles(u.Do("POST", base+"/series/list", map[string]any{"fullTextSearch": "hare"})); !strings.HasSuffix(got, fmt.Sprint(" of ", n)) {
				t.Errorf("%v and %v: found %s", c.own, c.group, got)
			}
			for title, id := range of {
				status := 404
				if slices.Contains(strings.Fields(seen), title) {
					status = 200
				}
				u.Do("GET", base+"/series/"+id, nil).Want(status)
			}
			if role == "admin" && n < len(of) { // a user who does not see all of it can neither delete nor change it
				u.Do("PATCH", base+"/libraries/"+in.String(), map[string]any{"description": "x"}).Want(403)
				u.Do("DELETE", base+"/libraries/"+in.String(), nil).Want(403)
			}
		}
	}
	if r.bumps.Load() == 0 || r.updates.Load() != 3 {
		t.Errorf("%d times told that access has changed, of %d series", r.bumps.Load(), r.updates.Load())
	}
	// A user who leaves the group, or loses the grant, sees everything again.
	u := r.User(t, "one", "reader")
	group := base + "/access-groups/" + admin.Do("POST", base+"/access-groups", map[string]any{"name": "Children"}).Want(201).Map()["id"].(string)
	admin.Do("POST", group+"/grants", grant(adult, "deny")).Want(200)
	join := func() {
		t.Helper()
		admin.Do("POST", group+"/members", map[string]any{"userIds": []string{u.ID.String()}}).Want(200)
		if got := titles(u.Do("GET", base+"/series", nil)); got != "Kids Plain of 2" {
			t.Errorf("as a member: %s", got)
		}
	}
	free := func() {
		t.Helper()
		if got := titles(u.Do("GET", base+"/series", nil)); got != "Adult Both Kids Plain of 4" {
			t.Errorf("free: %s", got)
		}
	}
	join()
	admin.Do("DELETE", group+"/members/"+u.ID.String(), nil).Want(204)
	free()
	join()
	admin.Do("DELETE", group+"/grants/"+adult, nil).Want(204)
	free()
	admin.Do("POST", group+"/grants", grant(adult, "deny")).Want(200)
	join()
	admin.Do("DELETE", group, nil).Want(204)
	free()
	admin.Do("PUT", base+"/users/"+u.ID.String()+"/sharing-tags", grant(kids, "allow")).Want(200)
	admin.Do("DELETE", base+"/admin/sharing-tags/"+kids, nil).Want(204)
	free()
}

// A connection that has served a user from whom series are hidden shows everything to the next one, despite cached
// plans.
func TestConnectionsAreShared(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, of := r.library(r.One, "A", "B")
	admin, some := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	tag := r.tag(admin, "Some")
	admin.Do("POST", base+"/series/"+of["A"]+"/sharing-tags", map[string]any{"sharingTagId": tag}).Want(200)
	admin.Do("PUT", base+"/users/"+some.ID.String()+"/sharing-tags", grant(tag, "allow")).Want(200)
	for _, prepare := range []bool{false, true} {
		d, err := db.Open(db.Config{URL: r.DB.AppURL, MaxConns: 1, Timeout: time.Minute, Prepare: prepare})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for n := range 20 { // more than the number of custom plans
			caller, want := &auth.Caller{Tenant: r.One, AccountID: admin.ID}, int64(2)
			if n%2 == 1 {
				caller.AccountID, want = some.ID, 1
			}
			var b pgx.Batch
			var seen, total int64
			var role string
			db.Value(&b, &seen, "with these as (select * from (select s.id from series s where s.tenant_id = app.tenant()) s) select count(*) from these")
			db.Value(&b, &total, "select app.total('books')")
			db.Value(&b, &role, "select current_user::text")
			if err := d.Run(db.In(t.Context(), caller), &b); err != nil {
				t.Fatal(err)
			}
			if seen != want || total != want || caller.Limited != (want == 1) || (role == "longbox_limited") != (want == 1) {
				t.Errorf("prepare %v, request %d: %d series, %d books as %s, limited %v; want %d", prepare, n, seen, total, role, caller.Limited, want)
			}
		}
		if err := d.Run(db.In(t.Context(), db.Tenant(r.One)), &pgx.Batch{}); err != nil {
			t.Fatal(err)
		}
		var role string
		if err := d.Pool().QueryRow(t.Context(), "select current_user::text").Scan(&role); err != nil || role != "longbox_app" {
			t.Errorf("afterwards the connection is %s's, %v", role, err)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, k := range []struct{ at, what, count string }{{"/admin/sharing-tags", "sharing tag", "userCount"}, {"/access-groups", "access group", "memberCount"}} {
		admin, foreign := r.User(t, "one", "admin"), r.User(t, "two", "admin")
		at := base + k.at
		made := admin.Do("POST", at, map[string]any{"name": " Kids ", "description": "under 12"}).Want(201).Map()
		if made["name"] != "Kids" || made["description"] != "under 12" || made[k.count] != 0.0 || made["createdAt"] == nil {
			t.Errorf("made: %v", made)
		}
		one := at + "/" + made["id"].(string)
		admin.Do("POST", at, map[string]any{"name": "adult"}).Want(201)
		for name, status := range map[string]int{"KIDS": 409, "": 400, " ": 400, "\u200b": 400, strings.Repeat("x", 101): 400} {
			m := admin.Do("POST", at, map[string]any{"name": name}).Want(status).Map()
			if d, _ := m["details"].([]any); len(d) != 1 || d[0].(map[string]any)["field"] != "name" {
				t.Errorf("%q: %v", name, m)
			}
		}
		if got := titles(admin.Do("GET", at+"?pageSize=1&page=2", nil)); got != "Kids of 2" {
			t.Errorf("listed: %s", got)
		}
		if got := admin.Do("PATCH", one, map[string]any{"description": nil}).Want(200).Map(); got["name"] != "Kids" || got["description"] != nil {
			t.Errorf("changed: %v", got)
		}
		if got := admin.Do("PATCH", one, map[string]any{"name": "kids"}).Want(200).Map(); got["name"] != "kids" || got["updatedAt"] == made["updatedAt"] {
			t.Errorf("renamed: %v", got)
		}
		if m := admin.Do("PATCH", one, map[string]any{"name": "Adult"}).Want(409).Map(); m["message"] != "Another "+k.what+" is already named Adult" {
			t.Errorf("a name that is taken: %v", m)
		}
		admin.Do("PATCH", one, map[string]any{"name": nil}).Want(400)
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			var body any
			if method == "PATCH" {
				body = map[string]any{"name": "Theirs"}
			}
			foreign.Do(method, one, body).Want(404)
			r.User(t, "one", "maintainer").Do(method, one, body).Want(403)
		}
		if got := admin.Do("GET", one, nil).Want(200).Map(); got["name"] != "kids" {
			t.Errorf("read: %v", got)
		}
		foreign.Do("POST", at, map[string]any{"name": "Kids"}).Want(201)
		admin.Do("DELETE", one, nil).Want(204)
		admin.Do("DELETE", one, nil).Want(404)
		r.DB.Exec(t, fmt.Sprintf("insert into %s (tenant_id, id, name) select $1, gen_random_uuid(), 'n' || n from generate_series(1, 998) n", strings.ReplaceAll(k.what, " ", "_")), r.One)
		admin.Do("POST", at, map[string]any{"name": "1000th"}).Want(201)
		admin.Do("POST", at, map[string]any{"name": "1001st"}).Want(409)
	}
}

func TestSeriesTags(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, foreign := r.User(t, "one", "admin"), r.User(t, "two", "admin")
	_, of := r.library(r.One, "A", "B")
	kids, adult, theirs := r.tag(admin, "Kids"), r.tag(admin, "adult"), r.tag(foreign, "Theirs")
	at := base + "/series/" + of["A"] + "/sharing-tags"
	is := func(want string) {
		t.Helper()
		if got := titles(admin.Do("GET", at, nil)); got != want {
			t.Errorf("tags: %s, want %s", got, want)
		}
	}
	is(" of 0")
	for range 2 {
		if got := titles(admin.Do("POST", at, map[string]any{"sharingTagId": kids}).Want(200)); got != "Kids of 1" {
			t.Errorf("added: %s", got)
		}
	}
	is("Kids of 1")
	if got := titles(admin.Do("PUT", at, map[string]any{"sharingTagIds": []string{adult, kids, adult}}).Want(200)); got != "adult Kids of 2" {
		t.Errorf("replaced: %s", got)
	}
	for _, unknown := range []string{theirs, uuid.NewString()} {
		for method, body := range map[string]any{"POST": map[string]any{"sharingTagId": unknown}, "PUT": map[string]any{"sharingTagIds": []string{kids, unknown}}} {
			m := admin.Do(method, at, body).Want(400).Map()
			if f := m["details"].([]any)[0].(map[string]any)["field"].(string); !strings.HasPrefix(f, "sharingTagId") {
				t.Errorf("%s: %v", method, m)
			}
		}
		admin.Do("DELETE", at+"/"+unknown, nil).Want(404)
	}
	is("adult Kids of 2")
	for path, want := range map[string]string{"is": "A of 1", "isNot": "B of 1", "isNull": "B of 1"} {
		condition := map[string]any{"operator": path, "value": "KIDS"}
		if path == "isNull" {
			delete(condition, "value")
		}
		body := map[string]any{"condition": map[string]any{"sharingTag": condition}}
		if got := titles(admin.Do("POST", base+"/series/list", body)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		// It counts only for administrators.
		if got := titles(r.User(t, "one", "maintainer").Do("POST", base+"/series/list", body)); got != "A B of 2" {
			t.Errorf("%s by somebody else: %s", path, got)
		}
	}
	foreign.Do("GET", at, nil).Want(404)
	foreign.Do("PUT", at, map[string]any{"sharingTagIds": []string{}}).Want(404)
	foreign.Do("PUT", at, map[string]any{"sharingTagIds": []string{theirs}}).Want(404)
	foreign.Do("POST", at, map[string]any{"sharingTagId": theirs}).Want(404)
	foreign.Do("DELETE", at+"/"+kids, nil).Want(404)
	is("adult Kids of 2")
	if got := admin.Do("GET", base+"/admin/sharing-tags/"+kids, nil).Want(200).Map(); got["seriesCount"] != 1.0 {
		t.Errorf("the tag: %v", got)
	}
	// A user who hides a series from themselves gets its tags in the response, and nothing from then on.
	hides := r.User(t, "one", "admin")
	admin.Do("PUT", base+"/users/"+hides.ID.String()+"/sharing-tags", grant(adult, "deny")).Want(200)
	other := base + "/series/" + of["B"] + "/sharing-tags"
	if got := titles(hides.Do("PUT", other, map[string]any{"sharingTagIds": []string{adult}})); got != "adult of 1" {
		t.Errorf("hidden: %s", got)
	}
	for method, body := range map[string]any{"GET": nil, "PUT": map[string]any{"sharingTagIds": []string{}}, "POST": map[string]any{"sharingTagId": kids}} {
		hides.Do(method, other, body).Want(404)
	}
	hides.Do("DELETE", other+"/"+adult, nil).Want(404)
	if got := titles(admin.Do("GET", other, nil)); got != "adult of 1" {
		t.Errorf("what is hidden was changed: %s", got)
	}
	// A user may replace tags by ones that hide the series from them: the tags are stored.
	teens := r.tag(admin, "Teens")
	sees := r.User(t, "one", "admin")
	admin.Do("PUT", base+"/users/"+sees.ID.String()+"/sharing-tags", grant(kids, "allow")).Want(200)
	sees.Do("PUT", at, map[string]any{"sharingTagIds": []string{teens}}).Want(200)
	is("Teens of 1")
	admin.Do("PUT", at, map[string]any{"sharingTagIds": []string{kids, adult}}).Want(200)
	before := r.updates.Load()
	admin.Do("DELETE", at+"/"+kids, nil).Want(204)
	admin.Do("DELETE", at+"/"+kids, nil).Want(404)
	is("adult of 1")
	if r.updates.Load() != before+1 {
		t.Errorf("%d events", r.updates.Load()-before)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, foreign, u := r.User(t, "one", "admin"), r.User(t, "two", "admin"), r.User(t, "one", "reader")
	kids, adult := r.tag(admin, "Kids"), r.tag(admin, "adult")
	at := base + "/users/" + u.ID.String()
	made := admin.Do("PUT", at+"/sharing-tags", grant(kids, "deny")).Want(200).Map()
	changed := admin.Do("PUT", at+"/sharing-tags", grant(kids, "allow")).Want(200).Map()
	if made["accessMode"] != "deny" || changed["accessMode"] != "allow" || changed["id"] != made["id"] || changed["sharingTagName"] != "Kids" {
		t.Errorf("%v, then %v", made, changed)
	}
	admin.Do("PUT", at+"/sharing-tags", grant(adult, "deny")).Want(200)
	shown := func(m map[string]any, of string) (out string) {
		for _, g := range m[of].([]any) {
			g := g.(map[string]any)
			out += fmt.Sprint(g["sharingTagName"], " ", g["accessMode"], " ")
			sources, _ := g["sources"].([]any)
			for _, s := range sources {
				s := s.(map[string]any)
				out += fmt.Sprint("by ", s["kind"], " ", s["groupName"], " ")
			}
		}
		return out
	}
	for path, c := range map[string]struct {
		client *testkit.Client
		of     string
	}{at + "/sharing-tags": {admin, "grants"}, base + "/user/sharing-tags": {u, "grants"}, at: {admin, "sharingTags"}, base + "/user": {u, "sharingTags"}} {
		if got := shown(c.client.Do("GET", path, nil).Want(200).Map(), c.of); got != "adult deny Kids allow " {
			t.Errorf("%s: %s", path, got)
		}
	}
	for query, want := range map[string]string{"?sharingTag=KIDS": u.Name + " of 1", "?sharingTag=kids&sharingTagMode=deny": " of 0", "?sharingTagMode=deny": u.Name + " of 1",
		"?sharingTag=adult&sharingTagMode=deny&role=reader": u.Name + " of 1", "?sharingTag=adult&role=admin": " of 0", "?sharingTag=none": " of 0"} {
		if got := titles(admin.Do("GET", base+"/users"+query, nil)); got != want {
			t.Errorf("users%s: %s, want %s", query, got, want)
		}
	}
	var groups []string
	for name, mode := range map[string]string{"Family": "deny", "Friends": "allow"} {
		group := base + "/access-groups/" + admin.Do("POST", base+"/access-groups", map[string]any{"name": name}).Want(201).Map()["id"].(string)
		if got := titles(admin.Do("POST", group+"/members", map[string]any{"userIds": []string{u.ID.String(), u.ID.String()}})); got != u.Name+" of 1" {
			t.Errorf("members: %s", got)
		}
		admin.Do("POST", group+"/grants", grant(kids, mode)).Want(200)
		groups = append(groups, group)
	}
	if got := shown(admin.Do("GET", at+"/effective-grants", nil).Want(200).Map(), "grants"); got != "adult deny by direct <nil> Kids deny by group Family " {
		t.Errorf("in effect: %s", got)
	}
	if got := titles(admin.Do("GET", at+"/access-groups", nil)); got != "Family Friends of 2" {
		t.Errorf("groups: %s", got)
	}
	m := admin.Do("GET", groups[0], nil).Want(200).Map()
	member := m["members"].([]any)[0].(map[string]any)
	if member["userId"] != u.ID.String() || member["username"] != u.Name || member["source"] != "manual" || m["memberCount"] != 1.0 || m["grantCount"] != 1.0 ||
		!strings.HasPrefix(shown(m, "grants"), "Kids ") || len(m["oidcMappings"].([]any)) != 0 {
		t.Errorf("group: %v", m)
	}
	// All are added, or none.
	stranger := uuid.NewString()
	other := r.User(t, "one", "reader")
	admin.Do("POST", groups[0]+"/members", map[string]any{"userIds": []string{other.ID.String(), stranger}}).Want(404)
	admin.Do("POST", groups[0]+"/members", map[string]any{"userIds": []string{foreign.ID.String()}}).Want(404)
	if got := admin.Do("GET", groups[0], nil).Want(200).Map(); got["memberCount"] != 1.0 {
		t.Errorf("after a refusal: %v", got)
	}
	for _, c := range []*testkit.Client{foreign} {
		c.Do("GET", at+"/sharing-tags", nil).Want(404)
		c.Do("PUT", at+"/sharing-tags", grant(kids, "allow")).Want(404)
		c.Do("DELETE", at+"/sharing-tags/"+kids, nil).Want(404)
		c.Do("GET", at+"/effective-grants", nil).Want(404)
		c.Do("GET", at+"/access-groups", nil).Want(404)
		c.Do("POST", groups[0]+"/grants", grant(kids, "allow")).Want(404)
		c.Do("DELETE", groups[0]+"/grants/"+kids, nil).Want(404)
		c.Do("POST", groups[0]+"/members", map[string]any{"userIds": []string{c.ID.String()}}).Want(404)
		c.Do("DELETE", groups[0]+"/members/"+u.ID.String(), nil).Want(404)
	}
	admin.Do("PUT", at+"/sharing-tags", grant(stranger, "allow")).Want(404)
	admin.Do("PUT", base+"/users/"+stranger+"/sharing-tags", grant(kids, "allow")).Want(404)
	admin.Do("PUT", at+"/sharing-tags", grant(kids, "perhaps")).Want(400)
	before := r.bumps.Load()
	admin.Do("DELETE", at+"/sharing-tags/"+kids, nil).Want(204)
	admin.Do("DELETE", at+"/sharing-tags/"+kids, nil).Want(404)
	if r.bumps.Load() != before+1 {
		t.Errorf("%d times told", r.bumps.Load()-before)
	}
}

// A client that shows what its user may no longer see, or does not show what he may see now, is told to reload.
func TestChangedAccessIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, u := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	tag := r.tag(admin, "horror")
	group := admin.Do("POST", base+"/access-groups", map[string]any{"name": "adults"}).Want(201).Map()["id"].(string)
	grant := map[string]any{"sharingTagId": tag, "accessMode": "deny"}
	for _, c := range []struct {
		method, path string
		body         any
		want         string
	}{
		{"PUT", "/users/" + u.ID.String() + "/sharing-tags", grant, u.ID.String()},
		{"DELETE", "/users/" + u.ID.String() + "/sharing-tags/" + tag, nil, u.ID.String()},
		{"POST", "/access-groups/" + group + "/members", map[string]any{"userIds": []string{u.ID.String()}}, u.ID.String()},
		{"POST", "/access-groups/" + group + "/grants", grant, ""},
		{"DELETE", "/access-groups/" + group + "/members/" + u.ID.String(), nil, u.ID.String()},
		{"DELETE", "/access-groups/" + group, nil, ""},
		{"DELETE", "/admin/sharing-tags/" + tag, nil, ""},
	} {
		r.told()
		if res := admin.Do(c.method, base+c.path, c.body); res.Status >= 300 {
			t.Fatalf("%s %s: %d %s", c.method, c.path, res.Status, res.Body)
		}
		if told := r.told(); !slices.Equal(told, []string{c.want}) {
			t.Errorf("%s %s: told %q, want %q", c.method, c.path, told, c.want)
		}
	}
	admin.Do("PUT", base+"/users/"+uuid.NewString()+"/sharing-tags", grant).Want(404)
	if told := r.told(); len(told) > 0 {
		t.Errorf("nothing changed, told %q", told)
	}
}
