package scanner_test

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// A book has the genres and tags that its file names, and those that people gave it; what they have locked stays.
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
		got := strings.Join(values[string](r, `select b.key || ' ' || g.name from book_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id
				join book b on b.tenant_id = x.tenant_id and b.id = x.book_id where x.tenant_id = app.tenant()
			union all select b.key || ' #' || g.name from book_tag x join tag g on g.tenant_id = x.tenant_id and g.id = x.tag_id
				join book b on b.tenant_id = x.tenant_id and b.id = x.book_id where x.tenant_id = app.tenant() order by 1`), ", ")
		if got != want {
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
