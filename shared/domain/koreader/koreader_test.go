package koreader_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/koreader"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const at = "/koreader/syncs/progress"

type object = map[string]any

// rig is KOReader's interface over a library in each of two tenants, both of which have turned it on.
type rig struct {
	*testkit.Server
	t    *testing.T
	told int // calls of added
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t}
	r.Server = testkit.Serve(t, r.routes)
	for _, tenant := range []uuid.UUID{r.One, r.Two} {
		r.DB.Set(t, tenant, setting.KOReader, "true")
		r.DB.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, gen_random_uuid(), 'Books', '/b', 'b', '', 'series_volume', 'filename', 'file_order')`, tenant)
		r.DB.Exec(t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
			select tenant_id, gen_random_uuid(), id, 's', 's', 's', 's', 's' from library where tenant_id = $1`, tenant)
	}
	return r
}

func (r *rig) routes(a *httpapi.API, d *db.DB) {
	koreader.Routes(a, d, func(context.Context, uuid.UUID) { r.told++ })
}

// book adds a book whose file has a digest.
func (r *rig) book(tenant uuid.UUID, digest, format string, pages int, spine ...string) uuid.UUID {
	r.t.Helper()
	id := uuid.New()
	r.DB.Exec(r.t, `insert into book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, title, title_sort, search_title, page_count)
		select tenant_id, $2::uuid, library_id, id, $2::uuid::text, 100, 'e', now() - interval '1 day', $3, 't', 't', 't', $4 from series where tenant_id = $1`, tenant, id, format, pages)
	r.DB.Exec(r.t, `insert into koreader_digest (tenant_id, book_id, digest, spine, file_size, file_etag, file_modified)
		select tenant_id, id, $2, $3, size, etag, modified_at from book where id = $1`, id, digest, append([]string{}, spine...))
	return id
}

// kept returns the stored last session of a book: user, page, device and device name.
func (r *rig) kept(book uuid.UUID) (out string) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(context.Background(), `select coalesce(string_agg(concat_ws(' ', a.username, p.current_page, s.device_id, coalesce(s.device_name, '-')), ', '), '')
		from progress p join account a on a.id = p.account_id join reading_session s on s.book_id = p.book_id and s.account_id = p.account_id where p.book_id = $1`, book).Scan(&out); err != nil {
		r.t.Fatal(err)
	}
	return out
}

func place(document string, progress any, percentage float64) object {
	return object{"document": document, "progress": progress, "percentage": percentage, "device_id": "A1"}
}

// A position belongs to one user, in one tenant, and only if KOReader is on.
func TestWhosePlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	comic := r.book(r.One, "d1", "cbz", 8)
	me, other, foreign := r.User(t, "one", "reader"), r.User(t, "one", "reader"), r.User(t, "two", "admin")
	me.Do("PUT", at, place("d1", 3, 0.375)).Want(200)
	if got, want := r.kept(comic), me.Name+" 3 koreader:A1 -"; got != want {
		t.Errorf("kept: %q, want %q", got, want)
	}
	if got := other.Do("GET", at+"/d1", nil).Want(404); !strings.Contains(string(got.Body), "not read the book yet") {
		t.Errorf("another user: %s", got.Body)
	}
	other.Do("PUT", at, place("d1", 5, 0.625)).Want(200)
	if got := me.Do("GET", at+"/d1", nil).Want(200).Map(); got["progress"] != "3" || got["percentage"] != 0.375 {
		t.Errorf("after another user's: %v", got)
	}
	if got := foreign.Do("GET", at+"/d1", nil).Want(404); !strings.Contains(string(got.Body), "No book has this file") {
		t.Errorf("another tenant: %s", got.Body)
	}
	foreign.Do("PUT", at, place("d1", 7, 0.875)).Want(200) // stores nothing
	if got := me.Do("GET", at+"/d1", nil).Want(200).Map(); got["progress"] != "3" {
		t.Errorf("after another tenant's: %v", got)
	}
	named := place("d1", 5, 0.625)
	named["device"] = "Kobo"
	other.Do("PUT", at, named).Want(200)
	if got, want := r.kept(comic), other.Name+" 5 koreader:A1 Kobo"; !strings.Contains(got, want) {
		t.Errorf("kept: %q, want %q", got, want)
	}
	r.Anonymous(t, "one").Do("POST", "/koreader/users/create", nil).Want(403)
	// Reading and writing require separate permissions.
	reads, writes := r.Key(t, me, "ProgressRead"), r.Key(t, me, "ProgressWrite")
	reads.Do("GET", at+"/d1", nil).Want(200)
	reads.Do("PUT", at, place("d1", 4, 0.5)).Want(403)
	writes.Do("GET", at+"/d1", nil).Want(403)
	writes.Do("PUT", at, place("d1", 3, 0.375)).Want(200)

	r.DB.Set(t, r.One, setting.KOReader, "false")
	for method, body := range map[string]any{"GET": nil, "PUT": place("d1", 6, 0.75)} {
		path := at
		if method == "GET" {
			path += "/d1"
		}
		if got := me.Do(method, path, body).Want(404); !strings.Contains(string(got.Body), "sync is off") {
			t.Errorf("%s while it is off: %s", method, got.Body)
		}
	}
	me.Do("GET", "/koreader/users/auth", nil).Want(404)
	r.DB.Set(t, r.One, setting.KOReader, "true")
	if got := me.Do("GET", at+"/d1", nil).Want(200).Map(); got["progress"] != "3" {
		t.Errorf("a place was kept while it was off: %v", got)
	}
	me.Do("GET", "/koreader//users/auth", nil).Want(200) // of an address that was typed with a slash at its end
	me.Do("GET", "/koreader//syncs/progress/d1", nil).Want(200)
	me.Do("GET", "/koreader///users/auth", nil).Want(404)
}

// A document is the book whose current file matches; if several match, nothing is written.
func TestWhichBook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	for what, change := range map[string]string{"larger": "size = size + 1", "written anew": "etag = 'f'", "newer": "modified_at = now()", "removed": "deleted_at = now()"} {
		id := r.book(r.One, what, "cbz", 8)
		r.DB.Exec(t, "update book set "+change+" where id = $1", id)
		me.Do("PUT", at, place(what, 3, 0.375)).Want(200)
		if got := me.Do("GET", at+"/"+strings.ReplaceAll(what, " ", "%20"), nil).Want(404); !strings.Contains(string(got.Body), "No book has this file") || r.kept(id) != "" {
			t.Errorf("the file is %s: %s, kept %q", what, got.Body, r.kept(id))
		}
	}
	one, two := r.book(r.One, "twins", "cbz", 8), r.book(r.One, "twins", "cbz", 8)
	me.Do("PUT", at, place("twins", 3, 0.375)).Want(200) // a refusal would stop KOReader from sending the rest of its queue
	me.Do("GET", at+"/twins", nil).Want(409)
	if r.kept(one)+r.kept(two) != "" {
		t.Errorf("kept of one of two: %q, %q", r.kept(one), r.kept(two))
	}
	r.DB.Exec(t, "update book set deleted_at = now() where id = $1", one)
	me.Do("PUT", at, place("twins", 3, 0.375)).Want(200)
	if r.kept(one) != "" || r.kept(two) == "" {
		t.Errorf("kept of the one that is left: %q, %q", r.kept(one), r.kept(two))
	}
	r.book(r.Two, "twins", "cbz", 8) // another tenant's book does not count
	me.Do("GET", at+"/twins", nil).Want(200)
}

// Pages and positions in KOReader's format, up to their limits.
func TestPlaces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	comic := r.book(r.One, "comic", "cbz", 8)
	novel := r.book(r.One, "novel", "EPUB", 3, "a/one.xhtml", "a/two.xhtml", "b/two.xhtml")
	is := func(document, progress string) {
		t.Helper()
		if got := me.Do("GET", at+"/"+document, nil).Want(200).Map(); got["progress"] != progress {
			t.Errorf("%s: %.100v, want %.100s", document, got["progress"], progress)
		}
	}
	me.Do("PUT", at, place("comic", " 5 ", 0.625)).Want(200)
	is("comic", "5")
	// Not a position in a comic: the percentage counts.
	me.Do("PUT", at, place("comic", "/body/DocFragment[3].0", 0.25)).Want(200)
	is("comic", "2")
	var locators int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(locator) from reading_session where book_id = $1", comic).Scan(&locators); err != nil || locators != 0 {
		t.Errorf("%d places of an e-book in a comic, %v", locators, err)
	}
	me.Do("PUT", at, place("comic", 999999999, 0.5)).Want(200) // capped at the last page
	is("comic", "8")
	me.Do("PUT", at, place("comic", "9999999999", 0.5)).Want(200) // not a page
	is("comic", "4")
	r.DB.Exec(t, "update progress set current_page = 0, percentage = null, completed = false where book_id = $1", comic)
	is("comic", "1") // KOReader counts from 1

	long := "/body/DocFragment[2]/" + strings.Repeat("x", 2000-21)
	me.Do("PUT", at, place("novel", long, 0.5)).Want(200)
	is("novel", long)
	me.Do("PUT", at, place("novel", long+"x", 0.5)).Want(400)
	me.Do("PUT", at, place("novel", "  ", 0.5)).Want(400)
	for progress, href := range map[string]string{"/body/DocFragment[1].0": "a/one.xhtml", "/body/DocFragment[3]/body": "b/two.xhtml", "/body/DocFragment[4].0": "", "/body/DocFragment[0].0": "",
		"#_doc_fragment_2_x": "b/two.xhtml", "/body/DocFragment[1]2": "", "elsewhere": "", "/body/DocFragment/body": "a/one.xhtml", "/body[1]/DocFragment[2]/x": "a/two.xhtml"} {
		me.Do("PUT", at, place("novel", progress, 0.5)).Want(200)
		is("novel", progress)
		var got string
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select locator::jsonb ->> 'href' from reading_session where book_id = $1 order by ended_at desc limit 1", novel).Scan(&got); err != nil || got != href {
			t.Errorf("%s lies in %q, want %q, %v", progress, got, href, err)
		}
	}
	me.Do("PUT", at, place("novel", "1", 0.6)).Want(200) // KOReader's own page number: the percentage counts
	is("novel", "/body/DocFragment[2].0")
	r.book(r.One, "nothing", "epub", 0)
	me.Do("PUT", at, place("nothing", "x", 0.6)).Want(200)
	r.DB.Exec(t, "update reading_session set locator = null where locator::jsonb ->> 'koreader' = 'x'")
	is("nothing", "/body/DocFragment[1].0")
	odd := r.book(r.One, "odd", "epub", 1, "a b%.xhtml")
	me.Do("PUT", at, place("odd", "/body/DocFragment[1].0", 0.5)).Want(200)
	var href string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select locator::jsonb ->> 'href' from reading_session where book_id = $1", odd).Scan(&href); err != nil || href != "a%20b%25.xhtml" {
		t.Errorf("a name with a space is %q, %v", href, err)
	}
	// Positions from other clients: the complete name of a document wins over a shorter one; if none matches, the page
	// counts.
	say := func(href string, told, now float64, page int) {
		t.Helper()
		r.DB.Exec(t, "update reading_session set locator = $2 where book_id = $1", novel, fmt.Sprintf(`{"href":%q,"locations":{"totalProgression":%g}}`, href, told))
		r.DB.Exec(t, "update progress set percentage = $2, current_page = $3, completed = false where book_id = $1", novel, now, page)
	}
	for _, c := range []struct {
		href      string
		told, now float64
		page      int
		want      int
	}{{"b/two.xhtml#x", 0.5, 0.5, 1, 3}, {"two.xhtml", 0.5, 0.5, 1, 2}, {"a/../b/./two.xhtml", 0.5, 0.5, 1, 3}, {"wo.xhtml", 0.5, 0.5, 1, 1}, {"b/two.xhtml", 0.5, 0.51, 1, 3}, {"b/two.xhtml", 0.5, 0.6, 2, 2}, {"none", 0.5, 0.5, 70, 3}, {"none", 0.5, 0.5, 0, 1}} {
		say(c.href, c.told, c.now, c.page)
		is("novel", fmt.Sprintf("/body/DocFragment[%d].0", c.want))
	}
	for _, odd := range []any{"\x00", "a\x00b", "\ufffd", []int{1}, nil, true, -1, 1.5, 1e12} {
		if got := me.Do("PUT", at, place("novel", odd, 0.5)); got.Status != 400 && got.Status != 200 {
			t.Errorf("%q: %d %s", odd, got.Status, got.Body)
		}
		me.Do("GET", at+"/novel", nil).Want(200)
	}
}

// An unknown document queues the digests: once, and again after an hour or when books were added since.
func TestDigestsAreAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	r.book(r.One, "known", "cbz", 8)
	tasks := func() (n int) {
		t.Helper()
		if err := r.DB.Owner.Pool().QueryRow(context.Background(), "select count(*) from task where tenant_id = $1 and type = $2", r.One, task.KOReaderDigests).Scan(&n); err != nil {
			t.Fatal(err)
		}
		r.DB.Exec(t, "update task set status = 'completed', completed_at = now()")
		return n
	}
	asks := map[string]func(c *testkit.Client){
		"signing in":         func(c *testkit.Client) { c.Do("GET", "/koreader/users/auth", nil).Want(200) },
		"an unknown file":    func(c *testkit.Client) { c.Do("GET", at+"/unknown", nil).Want(404) },
		"what is read of it": func(c *testkit.Client) { c.Do("PUT", at, place("unknown", 1, 0.5)).Want(200) },
	}
	fresh := func() *testkit.Client { return me.At(r.Beside(t, r.routes)) } // a process that has queued nothing yet
	r.DB.Exec(t, "update book set created_at = now() - interval '1 day'")
	for what, ask := range asks {
		r.DB.Exec(t, "delete from task")
		// An unrelated task.
		r.DB.Exec(t, "insert into task (tenant_id, id, type, status) values ($1, gen_random_uuid(), $2, 'completed')", r.One, task.ExportSeries)
		r.told = 0
		if ask(fresh()); tasks() != 1 || r.told != 1 {
			t.Errorf("%s asks for no digests, or tells nobody (%d)", what, r.told)
		}
		if ask(fresh()); tasks() != 1 {
			t.Errorf("%s asks again within the hour", what)
		}
		r.DB.Exec(t, "update task set created_at = now() - interval '59 minutes'")
		if ask(fresh()); tasks() != 1 {
			t.Errorf("%s asks again within the hour", what)
		}
		r.DB.Exec(t, "update book set created_at = now() - interval '30 minutes'")
		if ask(fresh()); tasks() != 2 {
			t.Errorf("%s does not ask for books that have come", what)
		}
		r.DB.Exec(t, "update book set created_at = now() - interval '1 day'")
		r.DB.Exec(t, "update task set created_at = now() - interval '61 minutes'")
		if ask(fresh()); tasks() != 3 {
			t.Errorf("%s does not ask after an hour", what)
		}
	}
	r.DB.Exec(t, "delete from task")
	fresh().Do("GET", at+"/known", nil).Want(404)
	fresh().Do("PUT", at, place("known", 1, 0.5)).Want(200)
	if tasks() != 0 {
		t.Error("a known file asks for digests")
	}
}
