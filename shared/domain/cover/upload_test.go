package cover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// heard collects the events of covers, as entity and id.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) publish(_ context.Context, _ uuid.UUID, all ...events.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range all {
		var of struct {
			Type string `json:"entity_type"`
			ID   string `json:"entity_id"`
		}
		data, err := json.Marshal(e.Data)
		if err == nil {
			err = json.Unmarshal(data, &of)
		}
		h.all = append(h.all, fmt.Sprint(e.Kind, " ", of.Type, " ", of.ID, err))
	}
}

// take returns the events since the last call.
func (h *heard) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.all, ", ")
	h.all = nil
	return out
}

func picture(t *testing.T, n int) []byte { return testkit.JPEG(t, 16+n, 32, n) }

func form(data []byte) testkit.Form { return testkit.Form{Member: "file", File: data} }

// listed returns the sources and widths of a book's covers; * marks the shown one.
func listed(c *testkit.Client, book string) string {
	var out []string
	for _, v := range c.Do("GET", book+"/covers", nil).Want(200).Map()["data"].([]any) {
		v := v.(map[string]any)
		out = append(out, strings.TrimSuffix(fmt.Sprint(v["source"], " ", v["width"], map[any]string{true: "*"}[v["isSelected"]]), " "))
	}
	return strings.Join(out, ", ")
}

func TestPeopleGiveBooksCovers(t *testing.T) {
	t.Parallel()
	var h heard
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) { cover.Routes(a, d, h.publish, nil) })
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	f := newShelf(t, s, s.One)
	other := uuid.New()
	s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		values ($1, $2, $3, $4, 'c', 1, now(), 'cbz', 'c', 'c', 'c')`, s.One, other, f.library, f.series)
	s.DB.Exec(t, "update book set fingerprint = 'f' where id = any($1)", []uuid.UUID{f.book, other})
	one := "/api/v1/books/" + f.book.String()
	is := func(want string) {
		t.Helper()
		if got := listed(reader, one); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// The series shows its first book.
	both := "cover_updated book " + f.book.String() + "<nil>, cover_updated series " + f.series.String() + "<nil>"
	told := func(what, want string) {
		t.Helper()
		if got := h.take(); got != want {
			t.Errorf("%s: told %q, want %q", what, got, want)
		}
	}
	is("")
	first := me.Do("POST", one+"/cover", form(picture(t, 1))).Want(201).Map()
	if first["bookId"] != f.book.String() || first["isSelected"] != true || first["source"] != "custom" || first["width"] != 17.0 || first["height"] != 32.0 ||
		first["path"] != one+"/covers/"+first["id"].(string)+"/image" {
		t.Errorf("uploaded: %v", first)
	}
	if _, there := first["seriesId"]; there {
		t.Errorf("uploaded: %v", first)
	}
	told("uploaded", both)
	second := me.Do("POST", one+"/cover", form(picture(t, 2))).Want(201).Map()
	is("custom 18*, custom 17")
	me.Do("POST", one+"/cover", form(picture(t, 1))).Want(201)
	is("custom 17*, custom 18")
	h.take()
	if got := me.Do("PUT", one+"/covers/"+second["id"].(string)+"/select", nil).Want(200).Map(); got["id"] != second["id"] || got["isSelected"] != true {
		t.Errorf("selected: %v", got)
	}
	told("selected", both)
	is("custom 17, custom 18*")
	me.Do("DELETE", one+"/covers/selected", nil).Want(204)
	told("reset", both)
	is("custom 17, custom 18")
	extra := me.Do("POST", one+"/cover", form(picture(t, 3))).Want(201).Map()
	me.Do("PUT", one+"/covers/"+second["id"].(string)+"/select", nil).Want(200)
	me.Do("DELETE", one+"/covers/"+extra["id"].(string), nil).Want(204) // not the shown one
	is("custom 17, custom 18*")
	me.Do("DELETE", one+"/covers/selected", nil).Want(204)

	res := reader.Do("GET", second["path"].(string), nil).Want(200)
	if !bytes.Equal(res.Body, picture(t, 2)) || res.Header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("%d bytes of %s", len(res.Body), res.Header.Get("Content-Type"))
	}
	reader.Header.Set("If-None-Match", res.Header.Get("ETag"))
	reader.Do("GET", second["path"].(string), nil).Want(304)
	reader.Header.Del("If-None-Match")

	me.Do("PUT", one+"/covers/"+second["id"].(string)+"/select", nil).Want(200)
	me.Do("DELETE", one+"/covers/"+second["id"].(string), nil).Want(204)
	is("custom 17*")
	me.Do("DELETE", one+"/covers/"+second["id"].(string), nil).Want(404)
	elsewhere := "/api/v1/books/" + other.String()
	h.take()
	third := me.Do("POST", elsewhere+"/cover", form(picture(t, 1))).Want(201).Map()
	told("not the first of its series", "cover_updated book "+other.String()+"<nil>")
	s.DB.Exec(t, "update book set number = case id when $1 then 2 else 1 end where id in ($1, $2)", f.book, other)
	me.Do("POST", elsewhere+"/cover", form(picture(t, 60))).Want(201)
	told("the first by number", "cover_updated book "+other.String()+"<nil>, cover_updated series "+f.series.String()+"<nil>")

	at := one + "/covers/" + first["id"].(string)
	for _, c := range []struct {
		method, path string
		body         any
	}{{"POST", one + "/cover", form(picture(t, 1))}, {"PUT", at + "/select", nil}, {"DELETE", at, nil}, {"GET", at + "/image", nil}, {"GET", one + "/covers", nil}, {"DELETE", one + "/covers/selected", nil}} {
		stranger.Do(c.method, c.path, c.body).Want(404)
		s.Anonymous(t, "one").Do(c.method, c.path, c.body).Want(401)
		if c.method != "GET" {
			reader.Do(c.method, c.path, c.body).Want(403)
		}
		me.Do(c.method, strings.Replace(c.path, f.book.String(), uuid.NewString(), 1), c.body).Want(404)
		me.Do(c.method, strings.Replace(c.path, f.book.String(), f.gone.String(), 1), c.body).Want(404)
		if strings.HasPrefix(c.path, at) {
			me.Do(c.method, strings.Replace(c.path, first["id"].(string), third["id"].(string), 1), c.body).Want(404)
		}
	}
	is("custom 17*")
	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", f.book)
	for _, c := range [][2]string{{"DELETE", at}, {"PUT", at + "/select"}, {"GET", at + "/image"}} {
		me.Do(c[0], c[1], nil).Want(404)
	}
	s.DB.Exec(t, "update book set deleted_at = null where id = $1", f.book)
	is("custom 17*")
	for name, body := range map[string]any{"no form": `{"file":"x"}`, "another member": testkit.Form{Member: "cover", File: picture(t, 1)}, "no picture": form([]byte("%PDF-1.7")), "nothing": form(nil)} {
		if m := me.Do("POST", one+"/cover", body).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "file" {
			t.Errorf("%s: %v", name, m)
		}
	}
	for i := range 19 {
		me.Do("POST", one+"/cover", form(picture(t, 10+i))).Want(201)
	}
	me.Do("POST", one+"/cover", form(picture(t, 50))).Want(409)
	me.Do("POST", one+"/cover", form(picture(t, 10))).Want(201) // exists already
	s.DB.Exec(t, "update book_cover set size = $1 where book_id = $2", 1<<30, f.book)
	me.Do("POST", elsewhere+"/cover", form(picture(t, 2))).Want(409)
	s.DB.Exec(t, "delete from book where id = $1", f.book)
	me.Do("POST", elsewhere+"/cover", form(picture(t, 2))).Want(201)
}

// A plugin's cover is shown unless the cover is locked, and replaces the plugin's previous one.
func TestPluginsGiveBooksCovers(t *testing.T) {
	t.Parallel()
	var h heard
	var database *db.DB
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		database = d
		cover.Routes(a, d, h.publish, nil)
	})
	me, f := s.User(t, "one", "maintainer"), newShelf(t, s, s.One)
	one := "/api/v1/books/" + f.book.String()
	for _, c := range []struct {
		n    int
		show bool
		want string
	}{{1, true, "plugin:test 17*"}, {2, true, "plugin:test 18*"}, {3, false, "plugin:test 19, plugin:test 18*"}} {
		var b pgx.Batch
		var given cover.Given
		cover.QueueGivenBook(&b, &given, f.book, picture(t, c.n), "plugin:test", c.show)
		if err := database.Run(s.In(s.One), &b); err != nil || given != (cover.Given{Kept: 1}) {
			t.Fatal(given, err)
		}
		if got := listed(me, one); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	// A picture that a person uploads as well becomes that person's, and stays.
	me.Do("POST", one+"/cover", form(picture(t, 3))).Want(201)
	me.Do("DELETE", one+"/covers/selected", nil).Want(204)
	var b pgx.Batch
	var given cover.Given
	cover.QueueGivenBook(&b, &given, f.book, picture(t, 4), "plugin:test", true)
	if err := database.Run(s.In(s.One), &b); err != nil {
		t.Fatal(err)
	}
	if got := listed(me, one); got != "plugin:test 20*, custom 19" {
		t.Errorf("uploaded by a person: %q", got)
	}
}

// The limits also hold for concurrent uploads, and for users from whom series are hidden.
func TestCoversAreBounded(t *testing.T) {
	t.Parallel()
	var h heard
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) { cover.Routes(a, d, h.publish, nil) })
	me, f := s.User(t, "one", "maintainer"), newShelf(t, s, s.One)
	tag, books := uuid.New(), make([]uuid.UUID, 6)
	for i := range books {
		books[i] = uuid.New()
	}
	s.DB.Exec(t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		select $1, id, $3, $4, id, 1, now(), 'cbz', 'c', 'c', 'c' from unnest($2::uuid[]) id`, s.One, books, f.library, f.series)
	s.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'Family')", s.One, tag)
	s.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, $2, $2, $3, 'allow')", s.One, tag, me.ID)
	s.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", s.One, f.series, tag)
	s.DB.Exec(t, `with s as (insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) select tenant_id, gen_random_uuid(), library_id, 'x', 'x', 'x', 'x', 'x' from series where id = $1 returning *),
		b as (insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title) select tenant_id, gen_random_uuid(), library_id, id, 'x', 1, now(), 'cbz', 'x', 'x', 'x' from s returning *)
		insert into book_cover (tenant_id, id, book_id, fingerprint, type, image, size) select tenant_id, gen_random_uuid(), id, n, 'image/png', '', 1 from b cross join generate_series(1, 49999) n`, f.series)
	upload := func(n int) (kept int) {
		t.Helper()
		var wg sync.WaitGroup
		var mu sync.Mutex
		for _, id := range books {
			wg.Go(func() {
				res := me.Do("POST", "/api/v1/books/"+id.String()+"/cover", form(picture(t, n)))
				mu.Lock()
				defer mu.Unlock()
				switch res.Status {
				case 201:
					kept++
				case 409:
				default:
					t.Errorf("status %d: %s", res.Status, res.Body)
				}
			})
		}
		wg.Wait()
		return kept
	}
	if n := upload(1); n != 1 {
		t.Errorf("where there is room for one cover, %d are kept", n)
	}
	s.DB.Exec(t, "delete from book_cover where book_id <> all($1) and fingerprint <> '1'", books)
	s.DB.Exec(t, "update book_cover set size = $1 where fingerprint = '1'", 1<<30-len(picture(t, 1))*2)
	if n := upload(1); n != 2 { // one exists already
		t.Errorf("where there is room for the bytes of one more, %d are kept", n)
	}
}
