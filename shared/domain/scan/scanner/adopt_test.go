package scanner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	r.db.Exec(r.t, sql, args...)
}

func (r *rig) rename(from, to string) {
	r.t.Helper()
	to = filepath.Join(r.folder, filepath.FromSlash(to))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(r.folder, filepath.FromSlash(from)), to); err != nil {
		r.t.Fatal(err)
	}
}

// read sets a user's progress in the book with this key.
func (r *rig) read(user, key string, page int) {
	r.t.Helper()
	r.exec(`insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $2, $3, $3 || '@example.org', '', 'reader')
		on conflict do nothing`, r.tenant, uuid.NewSHA1(uuid.Nil, []byte(user)), user)
	r.exec(`insert into progress (tenant_id, account_id, book_id, id, current_page) select $1, $2, id, gen_random_uuid(), $4 from book where tenant_id = $1 and key = $3`,
		r.tenant, uuid.NewSHA1(uuid.Nil, []byte(user)), key, page)
}

// shelf returns id, key, series path, page count and readers of every live book.
func (r *rig) shelf() []string {
	return values[string](r, `select concat_ws(' | ', b.id, b.key, s.path, b.page_count, b.analyzed, array_length(p.names, 1) = b.page_count and p.file_size = b.size,
		(select string_agg(a.username || ' ' || g.current_page, ', ' order by a.username) from progress g join account a on a.tenant_id = g.tenant_id and a.id = g.account_id
		 where g.tenant_id = b.tenant_id and g.book_id = b.id))
		from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant() and b.deleted_at is null order by b.key`)
}

func TestMovedFilesStayTheSameBooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 6 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/a%d.cbz", i), testkit.Comic(t, i, 2+i, "<Title>T</Title>"))
	}
	testkit.WriteFile(t, r.folder, "B/b.cbz", testkit.Comic(t, 10, 2, ""))
	r.scanned("normal")
	for i := range 6 {
		r.read("ann", fmt.Sprintf("A/a%d.cbz", i), 1+i)
	}
	r.exec(`update book_metadata m set locks = '{titleLock,summaryLock}', metadata = metadata || '{"summary": "Mine"}' from book b where b.id = m.book_id and b.key = 'A/a1.cbz'`)
	r.exec("update book set title = 'Mine', title_sort = 'Mine, sorted' where key = 'A/a1.cbz'")
	ids := map[string]string{}
	for _, row := range r.shelf() {
		f := strings.Split(row, " | ")
		ids[f[1]] = f[0]
	}
	r.rename("A/a0.cbz", "A/renamed.cbz")
	r.rename("A/a1.cbz", "B/a1.cbz")
	r.rename("A/a2.cbz", "New/deep/a2.cbz")
	r.s3.Counter.Reset()
	res := r.scanned("normal")
	if res.Created != 0 || res.Deleted != 0 || res.Moved != 3 || res.Series != 1 || res.Processed != 7 {
		t.Errorf("scan: %+v", res)
	}
	want := []string{
		ids["A/a3.cbz"] + " | A/a3.cbz | A | 5 | t | t | ann 4",
		ids["A/a4.cbz"] + " | A/a4.cbz | A | 6 | t | t | ann 5",
		ids["A/a5.cbz"] + " | A/a5.cbz | A | 7 | t | t | ann 6",
		ids["A/a0.cbz"] + " | A/renamed.cbz | A | 2 | t | t | ann 1",
		ids["A/a1.cbz"] + " | B/a1.cbz | B | 3 | t | t | ann 2",
		ids["B/b.cbz"] + " | B/b.cbz | B | 2 | t | t",
		ids["A/a2.cbz"] + " | New/deep/a2.cbz | New/deep | 4 | t | t | ann 3",
	}
	if got := r.shelf(); !slices.Equal(got, want) {
		t.Errorf("books\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := values[int64](r, "select count(*) from book where tenant_id = app.tenant()"); n[0] != 7 {
		t.Errorf("%d rows", n[0])
	}
	if got := values[string](r, `select concat_ws('|', b.title, b.title_sort, m.metadata->>'summary') from book b join book_metadata m on m.book_id = b.id where b.tenant_id = app.tenant() and b.key = 'B/a1.cbz'`); got[0] != "Mine|Mine, sorted|Mine" {
		t.Errorf("locked fields %q", got)
	}
	if got := values[string](r, `select c.books || ' ' || c.series || ' ' || (select string_agg(s.path || s.book_count, ',' order by s.path) from series s where s.tenant_id = c.tenant_id)
		from library_count c where tenant_id = app.tenant()`); got[0] != "7 3 A4,B2,New/deep1" {
		t.Errorf("counters %q", got)
	}
	// One GET for the index of each moved file, which includes even ComicInfo.xml.
	if gets := testkit.Objects(r.s3.Counter.Reset(), "GET"); len(gets) != 3 {
		t.Errorf("%d objects were read: %v", len(gets), gets)
	}
	if res := r.scanned("normal"); res.Created+res.Deleted+res.Updated+res.Moved != 0 {
		t.Errorf("the next scan: %+v", res)
	}
}

func TestRenamedFolderStaysTheSameSeries(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(r *rig){
		"the folder": func(r *rig) { r.rename("Batmen", "Batman") },
		"folder and files": func(r *rig) {
			for i := range 80 {
				r.rename(fmt.Sprintf("Batmen/Batmen %03d.cbz", i), fmt.Sprintf("Batman/Batman %03d.cbz", i))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i := range 80 {
				// Their contents all differ.
				testkit.WriteFile(t, r.folder, fmt.Sprintf("Batmen/Batmen %03d.cbz", i), testkit.Comic(t, i, 1+i/64, ""))
			}
			testkit.WriteFile(t, r.folder, "Batmen/broken.cbz", []byte("unreadable"))
			for i := range 100 { // so that the guard sees a large library
				testkit.WriteFile(t, r.folder, fmt.Sprintf("Other/%03d.cbz", i), []byte(fmt.Sprintf("unreadable %d", i)))
			}
			r.scan("normal")
			r.exec("update series set summary = 'Mine', locks = '{summary}' where path = 'Batmen'")
			r.read("ann", "Batmen/Batmen 007.cbz", 1)
			state := "select id || summary || locks::text || book_count from series where tenant_id = app.tenant() and summary is not null"
			before, books := values[string](r, state), values[string](r, "select id::text from book where tenant_id = app.tenant() and fingerprint <> '' order by key")
			move(r)
			if name == "folder and files" { // an unreadable file has no fingerprint: it is another book
				if err := os.Remove(filepath.Join(r.folder, "Batmen/broken.cbz")); err != nil {
					t.Fatal(err)
				}
				before[0] = strings.TrimSuffix(before[0], "81") + "80"
			}
			res := r.scan("normal")
			if res.Status != "completed" || res.Moved != 80 || res.Series != 0 {
				t.Errorf("scan: %+v", res)
			}
			if after := values[string](r, state); !slices.Equal(before, after) {
				t.Errorf("series %q, before %q", after, before)
			}
			if paths := values[string](r, "select path || ' ' || title || ' ' || search_title from series where tenant_id = app.tenant() order by 1"); !slices.Equal(paths, []string{"Batman Batman batman", "Other Other other"}) {
				t.Errorf("series %q", paths)
			}
			if after := values[string](r, "select id::text from book where tenant_id = app.tenant() and fingerprint <> '' order by key"); !slices.Equal(books, after) {
				t.Error("the books are others")
			}
			if n := values[int64](r, "select count(*) from progress p join book b on b.id = p.book_id where p.tenant_id = app.tenant() and b.key like 'Batman/%7.cbz' and b.deleted_at is null"); n[0] != 1 {
				t.Error("the progress is lost")
			}
		})
	}
}

// Equal files are distinguished by name, then by readers; unmatched books keep their readers.
func TestEqualFilesMoveInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	same := testkit.Comic(t, 1, 3, "")
	for _, key := range []string{"X/b.cbz", "Y/a.cbz", "Y/c.cbz", "Z/z.cbz"} {
		testkit.WriteFile(t, r.folder, key, same)
	}
	for i := range 5 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Z/%d.cbz", i), testkit.Comic(t, 5+i, 1, ""))
	}
	r.scanned("normal")
	r.read("ann", "X/b.cbz", 1)
	r.read("bob", "Y/a.cbz", 2)
	r.read("cid", "Y/c.cbz", 3)
	r.rename("X/b.cbz", "N/b.cbz")
	r.rename("Y/a.cbz", "N/a.cbz")
	r.scanned("normal")
	reading := func() []string {
		return values[string](r, `select b.key || ' ' || coalesce(string_agg(a.username || g.current_page, ','), '') || case when b.deleted_at is null then '' else ' gone' end
			from book b left join progress g on g.book_id = b.id left join account a on a.id = g.account_id
			where b.tenant_id = app.tenant() and (b.key like 'N/%' or b.key like 'Y/%') group by b.id, b.key, b.deleted_at order by b.key`)
	}
	if got, want := reading(), []string{"N/a.cbz bob2", "N/b.cbz ann1", "Y/c.cbz cid3"}; !slices.Equal(got, want) {
		t.Fatalf("by name: %q, want %q", got, want)
	}
	// Two go, one comes: the one with readers continues.
	r.exec("delete from progress where current_page = 2")
	r.rename("N/a.cbz", "N/new.cbz")
	if err := os.Remove(filepath.Join(r.folder, "Y/c.cbz")); err != nil {
		t.Fatal(err)
	}
	r.scanned("normal")
	if got, want := reading(), []string{"N/a.cbz  gone", "N/b.cbz ann1", "N/new.cbz cid3"}; !slices.Equal(got, want) {
		t.Fatalf("by readers: %q, want %q", got, want)
	}
}

// A copy is a separate book, even if the original is deleted much later.
func TestCopiesStayThemselves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 4 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("S/%d.cbz", i), testkit.Comic(t, i, 2, ""))
	}
	testkit.WriteFile(t, r.folder, "T/copy.cbz", testkit.Comic(t, 0, 2, ""))
	r.scanned("normal")
	r.exec("update book set created_at = created_at - interval '2 hours'")
	id := values[string](r, "select id::text from book where tenant_id = app.tenant() and key = 'T/copy.cbz'")
	if err := os.Remove(filepath.Join(r.folder, "S/0.cbz")); err != nil {
		t.Fatal(err)
	}
	if res := r.scanned("normal"); res.Deleted != 1 || res.Moved != 0 {
		t.Errorf("%+v", res)
	}
	if again := values[string](r, "select id::text from book where tenant_id = app.tenant() and key = 'T/copy.cbz'"); !slices.Equal(id, again) {
		t.Error("the copy took the place of the original")
	}
	// It comes back under another name: as itself.
	testkit.WriteFile(t, r.folder, "U/again.cbz", testkit.Comic(t, 0, 2, ""))
	if res := r.scanned("normal"); res.Moved != 1 || res.Created != 0 {
		t.Errorf("%+v", res)
	}
}

// A new file under an old name keeps the book and its progress, as far as it has pages.
func TestReplacedFileKeepsProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 9, ""))
	r.scanned("normal")
	r.read("ann", "S/a.cbz", 8)
	r.read("bob", "S/a.cbz", 2)
	before := strings.Split(r.shelf()[0], " | ")[0]
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 2, 5, ""))
	r.scanned("normal")
	if got, want := r.shelf(), []string{before + " | S/a.cbz | S | 5 | t | t | ann 5, bob 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
