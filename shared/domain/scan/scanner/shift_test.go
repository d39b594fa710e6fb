package scanner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/testkit"
)

// run is a series of numbered books whose files take each other's names. Book n has its number in its metadata and n+1
// pages; ann is on the last page. Every second one has a title and publisher from people; each has a genre that is not
// in its file.
type run struct {
	*rig
	ids map[string]string // of the books, by their first key
}

func numbered(n int) string { return fmt.Sprintf("S/%02d.cbz", n) }

func (r *rig) numbered(n int) []byte {
	return testkit.Comic(r.t, n, n+1, fmt.Sprintf("<Title>Title %d</Title><Summary>Summary %[1]d</Summary><Number>%[1]d</Number><Web>https://example.org/%[1]d</Web><Genre>Both, Genre %[1]d</Genre><Tags>Tag %[1]d</Tags>", n))
}

// newRun creates the books from first to last, and others beside them.
func newRun(t *testing.T, first, last int) *run {
	t.Helper()
	r := &run{newRig(t), map[string]string{}}
	for i := range 4 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Other/%d.cbz", i), testkit.Comic(t, 9000+i, 1, ""))
	}
	for n := first; n <= last; n++ {
		testkit.WriteFile(t, r.folder, numbered(n), r.numbered(n))
	}
	r.scanned("normal")
	r.own()
	return r
}

// own adds people's data to the books of the run.
func (r *run) own() {
	r.t.Helper()
	for _, row := range values[string](r.rig, "select key || ' ' || id from book where tenant_id = app.tenant() and key like 'S/%'") {
		key, id, _ := strings.Cut(row, " ")
		r.ids[key] = id
	}
	r.exec(`insert into account (tenant_id, id, username, email, password_hash, role) values ($1, $2, 'ann', 'ann@example.org', '', 'reader')`, r.tenant, uuid.NewSHA1(uuid.Nil, []byte("ann")))
	r.exec(`insert into progress (tenant_id, account_id, book_id, id, current_page) select $1, $2, id, gen_random_uuid(), page_count from book where tenant_id = $1 and key like 'S/%'`,
		r.tenant, uuid.NewSHA1(uuid.Nil, []byte("ann")))
	r.exec(`update book_metadata m set locks = '{titleLock,publisherLock}', metadata = metadata || jsonb_build_object('title', 'Mine ' || b.page_count - 1, 'publisher', 'Mine')
		from book b where b.id = m.book_id and b.key like 'S/%' and b.page_count % 2 = 0`)
	r.exec("update book b set title = 'Mine ' || page_count - 1 where key like 'S/%' and page_count % 2 = 0")
	r.exec("insert into genre (tenant_id, id, name) select $1, id, 'Own ' || page_count - 1 from book where tenant_id = $1 and key like 'S/%' on conflict do nothing", r.tenant)
	r.exec("insert into book_genre (tenant_id, book_id, genre_id) select $1, b.id, g.id from book b join genre g on g.tenant_id = b.tenant_id and g.name = 'Own ' || b.page_count - 1 where b.tenant_id = $1 and b.key like 'S/%'", r.tenant)
}

// permute renames files to each other's names, all at once.
func (r *run) permute(names map[string]string) {
	r.t.Helper()
	for from := range names {
		r.rename(from, from+".away")
	}
	for from, to := range names {
		r.rename(from+".away", to)
	}
}

// shift renames the files from first to last by some numbers.
func (r *run) shift(first, last, by int) {
	r.t.Helper()
	names := map[string]string{}
	for n := first; n <= last; n++ {
		names[numbered(n)] = numbered(n + by)
	}
	r.permute(names)
}

// settled runs a worker until no task is left.
func (r *run) settled() {
	r.t.Helper()
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
	for _, failure := range values[string](r.rig, "select last_error from task where tenant_id = app.tenant() and status = 'failed'") {
		r.t.Errorf("a task failed: %s", failure)
	}
}

// scan runs a scan and all tasks that follow: a stopped worker may hold a task until its lease expires.
func (r *run) scan(mode string) result {
	r.t.Helper()
	id := r.start(mode)
	r.settled()
	return r.result(id)
}

// scanned is a scan that must succeed.
func (r *run) scanned(mode string) {
	r.t.Helper()
	if res := r.scan(mode); res.Status != "completed" || res.Errors != 0 {
		r.t.Fatalf("scan: %+v", res)
	}
}

// books returns, for every book of the series, its place, first number, content, own data and reader.
func (r *run) books(where string) []string {
	r.t.Helper()
	first := map[string]string{}
	for key, id := range r.ids {
		first[id] = key
	}
	var out []string
	for _, row := range values[string](r.rig, `select b.id || concat_ws(' | ', '', b.key, 'pages ' || b.page_count, case when b.analyzed then 'read' else 'unread' end,
		case when array_length(p.names, 1) = b.page_count and (p.file_size, p.file_modified) = (b.size, b.modified_at) then 'indexed' else 'no index' end,
		b.title, b.number, m.metadata ->> 'summary', m.metadata ->> 'publisher', x.url, b.error_type,
		(select string_agg(t.name, ', ' order by t.name) from (select g.name, x.book_id from book_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id
			union all select g.name, x.book_id from book_tag x join tag g on g.tenant_id = x.tenant_id and g.id = x.tag_id) t where t.book_id = b.id),
		(select 'ann ' || g.current_page from progress g where g.tenant_id = b.tenant_id and g.book_id = b.id))
		from book b left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id left join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id
		left join external_link x on x.tenant_id = b.tenant_id and x.book_id = b.id
		where b.tenant_id = app.tenant() and (b.key like 'S/%' or b.key like 'R/%') and `+where+" order by b.key") {
		id, rest, _ := strings.Cut(row, " | ")
		name := first[id]
		if name == "" {
			name = "new"
		}
		out = append(out, name+" | "+rest)
	}
	return out
}

// want returns the result of books for book n in a new place, or for a new one.
func want(n int, key string, fresh bool) string {
	name, title, publisher, own, reader := "new", fmt.Sprintf("Title %d", n), "", "", ""
	if !fresh {
		name, own, reader = numbered(n), fmt.Sprintf("Own %d, ", n), fmt.Sprintf(" | ann %d", n+1)
	}
	if !fresh && n%2 == 1 {
		title, publisher = fmt.Sprintf("Mine %d", n), " | Mine"
	}
	return fmt.Sprintf("%s | %s | pages %d | read | indexed | %s | %d | Summary %d%s | https://example.org/%d | Both, Genre %d, %sTag %d%s", name, key, n+1, title, n, n, publisher, n, n, own, n, reader)
}

// placed returns the result of books if every book has its key in places; fresh holds the new ones.
func placed(places map[int]string, fresh map[int]string) []string {
	var out []string
	for n, key := range places {
		out = append(out, want(n, key, false))
	}
	for n, key := range fresh {
		out = append(out, want(n, key, true))
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(strings.Split(a, " | ")[1], strings.Split(b, " | ")[1]) })
	return out
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: not wanted: %s", what, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: missing: %s", what, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d, want %d", what, len(got), len(want))
	}
}

// counted checks the counters of the library and its series.
func (r *run) counted() {
	r.t.Helper()
	for _, bad := range values[string](r.rig, `select 'series ' || s.path from series s where s.tenant_id = app.tenant() and (s.book_count, s.file_size, s.page_count) is distinct from
		  (select (count(*), coalesce(sum(size), 0)::bigint, coalesce(sum(page_count), 0)::bigint) from book b where b.tenant_id = s.tenant_id and b.series_id = s.id and b.deleted_at is null)
		union all select 'library' from library_count c where c.tenant_id = app.tenant() and (c.books, c.bytes, c.pages) is distinct from
		  (select (count(*), coalesce(sum(size), 0)::bigint, coalesce(sum(page_count), 0)::bigint) from book b where b.tenant_id = c.tenant_id and b.library_id = c.library_id and b.deleted_at is null)`) {
		r.t.Errorf("the counters of %s are wrong", bad)
	}
}

// told compares the events with the places of the books.
func (r *run) told(places map[int]string, fresh int) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := map[uuid.UUID][]string{}
	for _, e := range r.events {
		var d struct {
			BookID uuid.UUID `json:"book_id"`
			Fields []string  `json:"fields"`
		}
		data, err := json.Marshal(e.Data)
		if err == nil {
			err = json.Unmarshal(data, &d)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		kinds[d.BookID] = append(kinds[d.BookID], append(d.Fields, e.Kind)...)
	}
	for n, key := range places {
		id := uuid.MustParse(r.ids[numbered(n)])
		if moved := key != numbered(n); moved != slices.Contains(kinds[id], "path") || slices.Contains(kinds[id], "book_deleted") {
			r.t.Errorf("of book %d, now %s, listeners were told %q", n, key, kinds[id])
		}
	}
	for _, told := range kinds {
		if slices.Contains(told, "book_created") && !slices.Contains(told, "book_deleted") {
			fresh--
		}
	}
	if fresh != 0 {
		r.t.Errorf("listeners miss %d new books", fresh)
	}
}

// Books follow files that take each other's names: with their ids, readers, locked fields and own titles.
func TestBooksFollowTheirContent(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *run)
		places map[int]string // expected places of the books 2 to 6
		fresh  map[int]string
		gone   []string
		result result
	}{
		"shift": {
			change: func(r *run) { r.shift(2, 6, 1) },
			places: map[int]string{2: numbered(3), 3: numbered(4), 4: numbered(5), 5: numbered(6), 6: numbered(7)},
			result: result{Moved: 5},
		},
		"shift down over a file that is gone": {
			change: func(r *run) {
				if err := os.Remove(filepath.Join(r.folder, numbered(3))); err != nil {
					r.t.Fatal(err)
				}
				r.shift(4, 6, -1)
			},
			places: map[int]string{2: numbered(2), 4: numbered(3), 5: numbered(4), 6: numbered(5)},
			gone:   []string{numbered(3)},
			result: result{Moved: 3, Deleted: 1},
		},
		"shift for a new one": {
			change: func(r *run) {
				r.shift(2, 6, 1)
				testkit.WriteFile(r.t, r.folder, numbered(2), r.numbered(20))
			},
			places: map[int]string{2: numbered(3), 3: numbered(4), 4: numbered(5), 5: numbered(6), 6: numbered(7)},
			fresh:  map[int]string{20: numbered(2)},
			result: result{Moved: 5, Created: 1},
		},
		"swap": {
			change: func(r *run) { r.permute(map[string]string{numbered(2): numbered(5), numbered(5): numbered(2)}) },
			places: map[int]string{2: numbered(5), 3: numbered(3), 4: numbered(4), 5: numbered(2), 6: numbered(6)},
			result: result{Moved: 2},
		},
		"cycle, and one in another series": {
			change: func(r *run) {
				r.permute(map[string]string{numbered(6): numbered(2), numbered(2): numbered(4), numbered(4): "R/04.cbz"})
			},
			places: map[int]string{2: numbered(4), 3: numbered(3), 4: "R/04.cbz", 5: numbered(5), 6: numbered(2)},
			result: result{Moved: 3, Series: 1},
		},
		"cycle": {
			change: func(r *run) {
				r.permute(map[string]string{numbered(6): numbered(2), numbered(2): numbered(4), numbered(4): numbered(6)})
			},
			places: map[int]string{2: numbered(4), 3: numbered(3), 4: numbered(6), 5: numbered(5), 6: numbered(2)},
			result: result{Moved: 3},
		},
		"a new one only": {
			change: func(r *run) { testkit.WriteFile(r.t, r.folder, "S/07.cbz", r.numbered(7)) },
			places: map[int]string{2: numbered(2), 3: numbered(3), 4: numbered(4), 5: numbered(5), 6: numbered(6)},
			fresh:  map[int]string{7: numbered(7)},
			result: result{Created: 1},
		},
	} {
		for _, mode := range []string{"normal", "deep"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				r := newRun(t, 2, 6)
				c.change(r)
				r.mu.Lock()
				r.events = nil
				r.mu.Unlock()
				res := r.scan(mode)
				if mode == "normal" { // a deep scan changes every book
					if got := (result{Series: res.Series, Created: res.Created, Updated: res.Updated, Deleted: res.Deleted, Restored: res.Restored, Moved: res.Moved}); fmt.Sprint(got) != fmt.Sprint(c.result) {
						t.Errorf("counted %+v, want %+v", got, c.result)
					}
				} else if res.Moved != c.result.Moved || res.Created != c.result.Created || res.Deleted != c.result.Deleted {
					t.Errorf("counted %+v, want %+v", res, c.result)
				}
				if res.Status != "completed" || res.Processed != res.Total || res.Errors != 0 {
					t.Errorf("scan: %+v", res)
				}
				same(t, "books", r.books("b.deleted_at is null"), placed(c.places, c.fresh))
				var gone []string
				for _, g := range r.books("b.deleted_at is not null") {
					gone = append(gone, strings.Split(g, " | ")[0])
				}
				same(t, "gone", gone, c.gone)
				r.counted()
				r.told(c.places, len(c.fresh))
				before := r.books("true")
				if res := r.scan("normal"); res.Created+res.Updated+res.Deleted+res.Moved+res.Restored != 0 {
					t.Errorf("the next scan: %+v", res)
				}
				same(t, "books after the next scan", r.books("true"), before)
			})
		}
	}
}

// A book whose content is gone and whose name another file has taken waits like any missing one, and comes back with
// its file.
func TestBookWithoutAPlaceComesBack(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 6)
	away := filepath.Join(t.TempDir(), "3")
	if err := os.Rename(filepath.Join(r.folder, numbered(3)), away); err != nil {
		t.Fatal(err)
	}
	r.shift(4, 6, -1)
	r.scanned("normal")
	// A new file under the freed name is none of the former books.
	testkit.WriteFile(t, r.folder, numbered(6), r.numbered(60))
	r.scanned("normal")
	if err := os.Rename(away, filepath.Join(r.folder, numbered(7))); err != nil {
		t.Fatal(err)
	}
	if res := r.scan("normal"); res.Moved != 1 || res.Created != 0 {
		t.Errorf("%+v", res)
	}
	same(t, "books", r.books("true"), placed(map[int]string{2: numbered(2), 3: numbered(7), 4: numbered(3), 5: numbered(4), 6: numbered(5)}, map[int]string{60: numbered(6)}))
}

// A file that moves on before its book was read again in the new place keeps its titles and metadata.
func TestFileMovesOnBeforeItsBookIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.shift(2, 4, 1)
	testkit.WriteFile(t, r.folder, numbered(2), r.numbered(20))
	r.scanned("normal")
	if n := values[int64](r.rig, "select count(*) from page_index where tenant_id = app.tenant() and revision < 0"); n[0] != 0 {
		t.Errorf("%d books were not read again", n[0])
	}
	for _, key := range []string{numbered(2), numbered(3)} { // unchanged
		r.exec("update page_index p set revision = -1 from book b where b.id = p.book_id and b.key = $1", key)
		r.exec("update book set title = '?' where key = $1", key)
		r.exec(`update book_metadata m set metadata = '{"summary": "?"}' from book b where b.id = m.book_id and b.key = $1`, key)
	}
	r.permute(map[string]string{numbered(2): numbered(8), numbered(3): numbered(9)})
	if res := r.scan("normal"); res.Moved != 2 || res.Created != 0 {
		t.Errorf("%+v", res)
	}
	same(t, "books", r.books("true"), placed(map[int]string{2: numbered(9), 3: numbered(4), 4: numbered(5)}, map[int]string{20: numbered(8)}))
}

// Equal contents cannot be distinguished: a book that kept its key stays, the others keep their order.
func TestShiftWithEqualFiles(t *testing.T) {
	t.Parallel()
	r := &run{newRig(t), map[string]string{}}
	for n := 2; n <= 6; n++ {
		testkit.WriteFile(t, r.folder, numbered(n), r.numbered(n))
	}
	same4 := r.numbered(4)
	for _, key := range []string{"S/10.cbz", "S/11.cbz", "S/12.cbz"} {
		testkit.WriteFile(t, r.folder, key, same4)
	}
	r.scanned("normal")
	r.own()
	names := func() (out []string) {
		for _, b := range r.books("b.deleted_at is null") {
			f := strings.Split(b, " | ")
			out = append(out, f[0]+" "+f[1]+" "+f[2])
		}
		return out
	}
	r.shift(2, 6, 1)
	r.permute(map[string]string{"S/10.cbz": "S/09.cbz"})
	r.scanned("normal")
	same(t, "books", names(), []string{"S/02.cbz S/03.cbz pages 3", "S/03.cbz S/04.cbz pages 4", "S/04.cbz S/05.cbz pages 5", "S/05.cbz S/06.cbz pages 6", "S/06.cbz S/07.cbz pages 7",
		"S/10.cbz S/09.cbz pages 5", "S/11.cbz S/11.cbz pages 5", "S/12.cbz S/12.cbz pages 5"})
	// A copy over another book replaces that book's content, as long as the original is in its place.
	testkit.WriteFile(t, r.folder, "S/03.cbz", same4)
	if res := r.scan("normal"); res.Updated != 1 || res.Moved != 0 {
		t.Errorf("%+v", res)
	}
	if got := names(); got[0] != "S/02.cbz S/03.cbz pages 5" || got[2] != "S/04.cbz S/05.cbz pages 5" {
		t.Errorf("after a copy: %q", got)
	}
}

// An unreadable file takes the name of one that has moved: it is a separate book with an error.
func TestShiftForABrokenFile(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 6)
	r.shift(2, 6, 1)
	testkit.WriteFile(t, r.folder, numbered(2), []byte("half a fi"))
	if res := r.scan("normal"); res.Moved != 5 || res.Created != 1 || res.Updated != 0 || res.Errors != 1 {
		t.Errorf("%+v", res)
	}
	places := map[int]string{2: numbered(3), 3: numbered(4), 4: numbered(5), 5: numbered(6), 6: numbered(7)}
	same(t, "books", r.books("b.deleted_at is null and b.error_type is null"), placed(places, nil))
	same(t, "broken", r.books("b.error_type is not null"), []string{"new | S/02.cbz | pages 0 | unread | no index | 02 | 2 | format_detection"})
	testkit.WriteFile(t, r.folder, numbered(2), r.numbered(20))
	if res := r.scan("normal"); res.Moved != 0 || res.Updated != 1 {
		t.Errorf("%+v", res)
	}
	same(t, "books", r.books("true"), placed(places, map[int]string{20: numbered(2)}))
}

// The book that is made for such a file is found by its title like any other.
func TestTitleOfABrokenFileInAnothersPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	name := "S/\u0045\u0301te\u0301 Noir.cbz" // the accents are characters of their own
	testkit.WriteFile(t, r.folder, name, testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, r.folder, "S/b.cbz", testkit.Comic(t, 2, 3, ""))
	r.scanned("normal")
	r.rename(name, "S/a.cbz")
	testkit.WriteFile(t, r.folder, name, []byte("half a fi"))
	if res := r.scan("normal"); res.Moved != 1 || res.Created != 1 {
		t.Fatalf("%+v", res)
	}
	same(t, "titles", values[string](r, "select concat_ws('|', title, title_sort, search_title) from book where tenant_id = app.tenant() and error_type is not null"),
		[]string{"\u00c9t\u00e9 Noir|\u00c9t\u00e9 Noir|ete noir"})
}

// A tenant above a new limit may still rename books.
func TestShiftBeyondTheLimit(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.exec("update tenant set max_books = 1")
	r.permute(map[string]string{numbered(2): numbered(3)})
	testkit.WriteFile(t, r.folder, numbered(2), r.numbered(20))
	if res := r.scan("normal"); res.Status != "completed" || res.Moved != 1 || res.Created != 1 || res.Updated != 0 || res.Deleted != 1 {
		t.Errorf("%+v", res)
	}
	same(t, "books", r.books("b.deleted_at is null"), placed(map[int]string{2: numbered(3), 4: numbered(4)}, map[int]string{20: numbered(2)}))
	r.counted()
}

// If numbers are positions, they follow the new names.
func TestShiftedPositions(t *testing.T) {
	t.Parallel()
	r := newRun(t, 2, 4)
	r.exec("update library set number_strategy = 'file_order'")
	r.shift(2, 4, 1)
	testkit.WriteFile(t, r.folder, numbered(2), r.numbered(20))
	r.scanned("deep")
	if got := values[string](r.rig, "select key || ' ' || number from book where tenant_id = app.tenant() and key like 'S/%' order by key"); !slices.Equal(got, []string{"S/02.cbz 1", "S/03.cbz 2", "S/04.cbz 3", "S/05.cbz 4"}) {
		t.Errorf("numbers %q", got)
	}
}

// Files are looked at in any order, one by one, as with notifications: the order does not matter.
func TestNamesChangeInAnyOrder(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *run)
		looked []int
		places map[int]string
	}{
		"swap": {
			change: func(r *run) { r.permute(map[string]string{numbered(2): numbered(4), numbered(4): numbered(2)}) },
			looked: []int{2, 4},
			places: map[int]string{2: numbered(4), 3: numbered(3), 4: numbered(2)},
		},
		"shift": {
			change: func(r *run) { r.shift(2, 4, 1) },
			looked: []int{2, 3, 4, 5},
			places: map[int]string{2: numbered(3), 3: numbered(4), 4: numbered(5)},
		},
	} {
		for order := range permutations(c.looked) {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				t.Parallel()
				r := newRun(t, 2, 4)
				c.change(r)
				s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 2}
				for _, n := range order {
					if err := s.Look(r.ctx(), r.tenant, r.library, []string{numbered(n)}); err != nil {
						t.Fatal(err)
					}
					r.settled()
				}
				same(t, "books", r.books("true"), placed(c.places, nil))
				r.counted()
				before := r.books("true")
				if res := r.scan("normal"); res.Created+res.Updated+res.Deleted+res.Moved+res.Restored != 0 {
					t.Errorf("a scan after it: %+v", res)
				}
				same(t, "books after a scan", r.books("true"), before)
			})
		}
	}
}

// permutations yields every order of a list.
func permutations(list []int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		var walk func(done, left []int) bool
		walk = func(done, left []int) bool {
			if len(left) == 0 {
				return yield(slices.Clone(done))
			}
			for i := range left {
				if !walk(append(done, left[i]), slices.Concat(left[:i], left[i+1:])) {
					return false
				}
			}
			return true
		}
		walk(nil, list)
	}
}

// Books of several tasks follow their content although the workers are killed repeatedly, and although the scan is
// cancelled and another one continues.
func TestKilledAndCancelledShift(t *testing.T) {
	const first, last = 2, 141
	r := newRun(t, first, last)
	r.shift(first, last, 1)
	stop := r.rescue()
	defer stop()
	r.exec("alter table task alter column max_attempts set default 100") // not caused by a file
	id := r.start("normal")
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(1, seed))
	ended := func() bool { res := r.result(id); return res.Status != task.Pending && res.Status != task.Running }
	kills, cancelled := 0, false
	for ; !ended(); kills++ {
		cmd := r.worker(1000, shortLease)
		life := time.Duration(50+random.IntN(200)) * time.Millisecond
		if kills > 12 {
			t.Fatalf("the scan does not end: %+v", r.result(id))
		}
		if kills == 3 {
			if _, err := task.Cancel(r.ctx(), r.db.App, id); err != nil {
				t.Fatal(err)
			}
			cancelled = true
			id = r.start("normal")
		}
		if kills > 10 {
			life = stuck // let it finish
		}
		r.lives(cmd, life, ended)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed as expected
	}
	if res := r.result(id); res.Status != "completed" || res.Processed != res.Total {
		t.Errorf("after %d kills: %+v", kills, res)
	}
	r.settled()
	places := map[int]string{}
	for n := first; n <= last; n++ {
		places[n] = numbered(n + 1)
	}
	same(t, "books", r.books("true"), placed(places, nil))
	r.counted()
	if !cancelled {
		t.Errorf("the scan ended after %d kills, before it was cancelled", kills)
	}
	r.killedAtWork(kills)
}
