package scanner_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// terms returns the genres and #tags of books.
func terms(r *rig) []string {
	r.t.Helper()
	return values[string](r, `select b.key || ' ' || g.name from book_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id
			join book b on b.tenant_id = x.tenant_id and b.id = x.book_id where x.tenant_id = app.tenant()
		union all select b.key || ' #' || g.name from book_tag x join tag g on g.tenant_id = x.tenant_id and g.id = x.tag_id
			join book b on b.tenant_id = x.tenant_id and b.id = x.book_id where x.tenant_id = app.tenant() order by 1`)
}

// A book has the genres and tags in its file, and those from people; a locked set stays.
func TestGenresOfBooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	write := func(info string) {
		t.Helper()
		testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, info))
		r.scanned("normal")
	}
	is := func(what, want string) {
		t.Helper()
		if got := strings.Join(terms(r), ", "); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	testkit.WriteFile(t, r.folder, "S/2.cbz", testkit.Comic(t, 2, 1, "<Genre>Drama</Genre>"))
	write("<Genre>Drama, Comedy</Genre><Tags>red</Tags>")
	is("read", "S/1.cbz #red, S/1.cbz Comedy, S/1.cbz Drama, S/2.cbz Drama")
	r.exec("insert into genre (tenant_id, id, name) values ($1, gen_random_uuid(), 'Mine')", r.tenant)
	r.exec("insert into book_genre (tenant_id, book_id, genre_id) select b.tenant_id, b.id, g.id from book b, genre g where b.key = 'S/1.cbz' and g.name = 'Mine'")
	write("<Genre>drama, Horror</Genre>")
	is("the file names others", "S/1.cbz Drama, S/1.cbz Horror, S/1.cbz Mine, S/2.cbz Drama")
	r.exec("update book_metadata m set locks = '{genresLock}' from book b where b.id = m.book_id and b.key = 'S/1.cbz'")
	write("<Genre>Western</Genre><Tags>blue</Tags>")
	is("locked", "S/1.cbz #blue, S/1.cbz Drama, S/1.cbz Horror, S/1.cbz Mine, S/2.cbz Drama")
	r.scanned("deep")
	is("read again", "S/1.cbz #blue, S/1.cbz Drama, S/1.cbz Horror, S/1.cbz Mine, S/2.cbz Drama")
}

// An outdated analysis changes nothing.
func TestGenresOfOutdatedAnalysis(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, "<Genre>Drama</Genre><Tags>red</Tags>"))
	r.scanned("normal")
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, "<Genre>Comedy</Genre><Tags>green</Tags>"))
	r.s3.Counter.Meddle(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == "GET" && strings.HasSuffix(req.URL.Path, "/S/1.cbz") {
			r.exec("update book set revision = revision + 1 where key = 'S/1.cbz'")
		}
		next.ServeHTTP(w, req)
	})
	r.scan("normal")
	r.s3.Counter.Meddle(nil)
	if got := strings.Join(terms(r), ", "); got != "S/1.cbz #red, S/1.cbz Drama" {
		t.Errorf("the book has %s", got)
	}
	r.scanned("deep")
	if got := strings.Join(terms(r), ", "); got != "S/1.cbz #green, S/1.cbz Comedy" {
		t.Errorf("read again, the book has %s", got)
	}
}

// The number of names from a file is limited, and names of a previous version are removed.
func TestGenresWithoutEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var all []string
	for i := range 1200 {
		all = append(all, fmt.Sprint("g", i))
	}
	has := func(want int) {
		t.Helper()
		if n := values[int](r, `select count(*) from book_genre where tenant_id = app.tenant()
			union all select coalesce(jsonb_array_length(metadata -> 'genres'), 0) from book_metadata where tenant_id = app.tenant()`); n[0] != want || n[1] != want {
			t.Errorf("the book has %d genres and names %d, want %d", n[0], n[1], want)
		}
	}
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, "<Genre>"+strings.Join(all, ", ")+"</Genre>"))
	r.scanned("normal")
	has(1000)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, "<Genre>g0</Genre>"))
	r.scanned("normal")
	has(1)
}

// A book that follows its file shows the cover chosen at the new place, unless its cover is locked.
func TestLockedCoverOfFollower(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 2 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 1, ""))
	}
	r.scanned("normal")
	for i := range 2 {
		r.read("ann", fmt.Sprintf("S/%d.cbz", i), 1)
	}
	r.exec("update book_metadata m set locks = '{coverLock}' from book b where b.id = m.book_id and b.key = 'S/1.cbz'")
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		select tenant_id, gen_random_uuid(), library_id, series_id, 'S/new' || substr(key, 3), size, modified_at, format, title, title_sort, search_title from book where tenant_id = $1 and key like 'S/%'`, r.tenant)
	r.exec("insert into book_cover (tenant_id, id, book_id, fingerprint, type, image, size) select tenant_id, id, id, 'f', 'image/png', '', 1 from book where tenant_id = $1 and key like 'S/new%'", r.tenant)
	r.exec("update book set cover_source = 'custom:' || id where tenant_id = $1 and key like 'S/new%'", r.tenant)
	values[bool](r, `select app.hand_books(array_agg(n.id order by n.key), array_agg(o.id order by n.key)) is null from book n join book o on o.tenant_id = n.tenant_id and n.key = 'S/new' || substr(o.key, 3)
		where n.tenant_id = app.tenant()`)
	if got := values[string](r, `select b.key || ' ' || (b.cover_source is not null) || ' ' || count(c.id) from book b join book_cover c on c.tenant_id = b.tenant_id and c.book_id = b.id
		where b.tenant_id = app.tenant() group by b.tenant_id, b.id order by 1`); strings.Join(got, ", ") != "S/0.cbz true 1, S/1.cbz false 1" {
		t.Errorf("covers: %q", got)
	}
}
