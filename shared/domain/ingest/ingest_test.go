package ingest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/ingest"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

func TestUploadAppearsChangesAndVanishes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	lib := r.library(r.tenant, "", "file_order")
	r.work()
	analysed := func(key string, pages int) {
		t.Helper()
		testkit.Eventually(t, 10*time.Second, func() bool {
			return r.count("select count(*) from book where key = $1 and analyzed and deleted_at is null and page_count = $2", key, pages) == 1
		})
	}
	for _, key := range []string{"Series A/One 2.cbz", "Säries/日本 100% + #1.cbz"} {
		r.put(key, 1, 2)
		started := time.Now()
		r.say(created, key)
		analysed(key, 2)
		t.Logf("%s was there %s after its upload", key, time.Since(started).Round(time.Millisecond))
	}
	r.put("Series A/One 1.cbz", 2, 3)
	r.say("ObjectCreated:CompleteMultipartUpload", "Series A/One 1.cbz")
	analysed("Series A/One 1.cbz", 3)
	if got := rows[float64](r, "select number from book where key like 'Series A/%' order by key"); !slices.Equal(got, []float64{1, 2}) {
		t.Errorf("numbers %v", got)
	}
	r.put("Series A/One 2.cbz", 3, 5)
	r.say("ObjectCreated:Copy", "Series A/One 2.cbz")
	analysed("Series A/One 2.cbz", 5)

	id := rows[string](r, "select id::text from book where key = 'Series A/One 1.cbz'")
	r.remove("Series A/One 1.cbz")
	r.say("ObjectRemoved:DeleteMarkerCreated", "Series A/One 1.cbz")
	if got := rows[string](r, "select key || number from book where library_id = $1 and deleted_at is null order by key", lib); !slices.Equal(got, []string{"Series A/One 2.cbz1", "Säries/日本 100% + #1.cbz1"}) {
		t.Errorf("after the removal: %q", got)
	}
	r.put("Series A/One 1.cbz", 4, 4)
	r.say(removed, "Series A/One 1.cbz") // late: the key exists again
	analysed("Series A/One 1.cbz", 4)
	if again := rows[string](r, "select id::text from book where key = 'Series A/One 1.cbz'"); !slices.Equal(id, again) {
		t.Errorf("the book came back as another: %v, %v", id, again)
	}
	r.idle()
	if n := r.count("select count(*) from scan"); n != 0 {
		t.Errorf("%d scans", n)
	}
	kinds := map[string]int{}
	r.mu.Lock()
	told := slices.Clone(r.events)
	r.mu.Unlock()
	for _, e := range told {
		kinds[fmt.Sprintf("%T", e)]++
	}
	if len(told) < 10 {
		t.Errorf("listeners were told %d things: %v", len(told), kinds)
	}
	// A scan has nothing to do.
	before := r.state(lib)
	revisions := rows[int64](r, "select sum(revision) from book")
	r.startScan(lib)
	r.idle()
	if after := r.state(lib); !slices.Equal(before, after) || !slices.Equal(revisions, rows[int64](r, "select sum(revision) from book")) {
		t.Errorf("a scan changed\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

func TestSameResultAsAScan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.work()
	for _, numbers := range []string{"file_order", "filename"} {
		var keys []string
		for s := range 4 {
			for b := range 15 {
				key := fmt.Sprintf("%s/S %d/b %d.cbz", numbers, s, b)
				r.put(key, s*100+b, 1+b%3)
				keys = append(keys, key)
			}
		}
		scanned := r.library(r.tenant, numbers+"/", numbers)
		r.startScan(scanned)
		r.idle()
		want := r.state(scanned)
		r.exec("update library set is_active = false where id = $1", scanned)
		announced := r.library(r.tenant, numbers+"/", numbers)
		r.exec("update library set is_active = false where id <> $1 and is_active", announced)
		all := slices.Repeat(keys, 3) // each three times, shuffled, concurrently
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var wg sync.WaitGroup
		for part := range slices.Chunk(all, 20) {
			wg.Go(func() { r.say(created, part...) })
		}
		wg.Wait()
		r.idle()
		got := r.state(announced)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: announced\n%s\nscanned\n%s", numbers, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := r.count("select max(revision) from book where library_id = $1", announced); n != 0 {
			t.Errorf("%s: repeated notifications changed a book (revision %d)", numbers, n)
		}
	}
}

func TestForeignObjectsAreDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	two := r.db.Tenant(t, "two")
	mine, theirs := r.library(r.tenant, "one/", "smart"), r.library(two, "two/", "smart")
	r.exec("update library set allowed_formats = '{CBZ}', excluded_patterns = 'skip' where id = $1", mine)
	good := []string{"one/S/a.cbz", "two/S/a.cbz"}
	bad := []string{"S/a.cbz", "on/a.cbz", "onemore/a.cbz", "one/a.epub", "one/notes.txt", "one/.hidden/a.cbz", "one/__MACOSX/a.cbz", "one/skip/a.cbz", "one/S/", "one"}
	for _, key := range append(bad, good...) {
		if !strings.HasSuffix(key, "/") && key != "one" {
			r.put(key, 1, 1)
		}
		r.say(created, key)
	}
	if err := r.ingest.Objects(t.Context(), json.RawMessage(records(record(created, "other", "one/S/a.cbz")))); err != nil {
		t.Errorf("another bucket: %v", err)
	}
	if got := rows[string](r, "select l.prefix || b.key from book b join library l on l.id = b.library_id order by 1"); !slices.Equal(got, good) {
		t.Errorf("books %q, want %q", got, good)
	}
	r.remove("one/S/a.cbz")
	r.remove("two/S/a.cbz")
	r.exec("update tenant set status = 'suspended' where id = $1", two)
	r.exec("update library set is_active = false where id = $1", mine)
	r.say(removed, good...)
	if n := r.count("select count(*) from book where deleted_at is null"); n != 2 {
		t.Errorf("%d books are left of a suspended tenant and an inactive library", n)
	}
	r.exec("update tenant set status = 'active'")
	r.say(removed, "two/S") // only the key itself, no prefix
	r.say(removed, "two/S/a.cb")
	if n := r.count("select count(*) from book where library_id = $1 and deleted_at is null", theirs); n != 1 {
		t.Errorf("more than the key was removed")
	}
	r.say(removed, "two/S/a.cbz")
	if n := r.count("select count(*) from book where library_id = $1 and deleted_at is null", theirs); n != 0 {
		t.Errorf("%d books are left", n)
	}
	if err := r.ingest.Objects(t.Context(), json.RawMessage(`{"tenant": 1}`)); !fault.Is(err, fault.BadRequest) {
		t.Errorf("no notification: %v", err)
	}
}

// A scan whose listing is older than a notification, and a look whose response is older than a scan.
func TestWhileAScanRuns(t *testing.T) {
	t.Parallel()
	for name, scanFirst := range map[string]bool{"the scan is late": true, "the notification is late": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			lib := r.library(r.tenant, "lib/", "file_order")
			old := []string{"lib/S/1.cbz", "lib/S/2.cbz", "lib/S/3.cbz", "lib/S/5.cbz"}
			for i, key := range old {
				r.put(key, i, 1)
			}
			r.say(created, old[:3]...) // 5 is not known yet
			g := newGate(r)
			late := r.scanner(g.store)
			change := func() {
				r.put("lib/S/1.cbz", 50, 4) // replaced
				r.remove("lib/S/2.cbz")     // known and removed
				r.remove("lib/S/5.cbz")     // not known, and removed
				r.put("lib/S/4.cbz", 60, 2) // added
			}
			keys := []string{"lib/S/1.cbz", "lib/S/2.cbz", "lib/S/4.cbz", "lib/S/5.cbz"}
			if scanFirst {
				r.scan = late
				held, release := g.hold(func(q *http.Request) bool {
					return q.URL.Query().Get("delimiter") == "" && q.URL.Query().Has("list-type")
				})
				defer release()
				r.startScan(lib)
				r.work()
				<-held
				change()
				r.say(created, keys...)
				release()
			} else {
				slow := &ingest.Ingest{System: r.db.System, Scanner: late}
				held, release := g.hold(func(q *http.Request) bool { return q.URL.Query().Has("list-type") })
				defer release()
				done := make(chan error, 1)
				go func() {
					var all []string
					for _, key := range keys {
						all = append(all, record(created, "books", url.QueryEscape(key)))
					}
					done <- slow.Objects(context.WithoutCancel(t.Context()), json.RawMessage(records(all...)))
				}()
				<-held
				change()
				r.startScan(lib)
				r.work()
				r.idle()
				release()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			r.idle()
			got := r.state(lib)
			fresh := r.library(r.tenant, "lib/", "file_order")
			r.startScan(fresh)
			r.idle()
			if want := r.state(fresh); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// A scan has compared a folder and goes on with the next; its findings are written only at the end.
func TestBetweenListingAndWriting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	lib := r.library(r.tenant, "", "file_order")
	keys := []string{"A/1.cbz", "A/2.cbz", "B/1.cbz"}
	for i, key := range keys {
		r.put(key, i, 1)
	}
	r.say(created, keys...)
	r.remove("A/1.cbz") // without a notification: the scan finds out
	g := newGate(r)
	r.scan = r.scanner(g.store)
	held, release := g.hold(func(q *http.Request) bool { return strings.HasPrefix(q.URL.Query().Get("start-after"), "B/") })
	defer release()
	r.startScan(lib)
	r.work()
	<-held
	testkit.Eventually(t, 10*time.Second, func() bool { return r.count("select sum(files_total)::bigint from scan") == 1 })
	r.put("A/1.cbz", 9, 3)
	r.say(created, "A/1.cbz")
	release()
	r.idle()
	if got := rows[string](r, "select key || page_count from book where deleted_at is null order by key"); !slices.Equal(got, []string{"A/1.cbz3", "A/2.cbz1", "B/1.cbz1"}) {
		t.Errorf("books %q", got)
	}
	if n := r.count("select books_deleted from scan"); n != 0 {
		t.Errorf("%d deleted", n)
	}
}

// looks records the sizes of batches.
type looks struct {
	mu    sync.Mutex
	calls []int
	block chan struct{}
	fail  uuid.UUID
}

func (l *looks) Look(_ context.Context, _, library uuid.UUID, keys []string) error {
	<-l.block
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, len(keys))
	if library == l.fail {
		return fmt.Errorf("this library cannot be read")
	}
	return nil
}

func TestManyNotificationsAreTakenTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	good, bad := r.library(r.tenant, "good/", "smart"), r.library(r.tenant, "bad/", "smart")
	l := &looks{block: make(chan struct{}), fail: bad}
	i := &ingest.Ingest{System: r.db.System, Scanner: l}
	var wg sync.WaitGroup
	say := func(key string, fails bool) {
		wg.Go(func() {
			err := i.Objects(context.Background(), json.RawMessage(records(record(created, "books", key))))
			if (err != nil) != fails {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	for n := range 300 {
		say(fmt.Sprintf("good/%d.cbz", n), false)
	}
	say("bad/1.cbz", true)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := i.Objects(short, json.RawMessage(records(record(created, "books", "good/x.cbz")))); err == nil {
		t.Error("a caller without time left does not say so")
	}
	close(l.block)
	wg.Wait()
	total := 0
	for _, n := range l.calls {
		total += n
	}
	if len(l.calls) > 60 || total < 301 {
		t.Errorf("%d objects of %s in %d looks", total, good, len(l.calls))
	}
	t.Logf("%d objects in %d looks", total, len(l.calls))
}

// Announced sidecars have the same effect as those found by a scan, in any order.
func TestSidecarsAreTakenIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.library(r.tenant, "", "smart")
	r.work()
	put := func(key, data string) {
		t.Helper()
		if err := r.s3.Store.Put(t.Context(), "books", key, "text/plain", []byte(data)); err != nil {
			t.Fatal(err)
		}
		r.say(created, key)
	}
	became := func(want string) {
		t.Helper()
		got := ""
		testkit.Eventually(t, 10*time.Second, func() bool {
			got = strings.Join(rows[string](r, "select concat_ws('|', b.title, s.publisher) from book b join series s on s.id = b.series_id where b.analyzed"), ",")
			return got == want
		})
	}
	put("S/series.json", `{"metadata": {"publisher": "P"}}`)
	put("S/metadata.opf", `<package><metadata><title>Beside</title></metadata></package>`)
	put("S/readme.txt", "nothing of interest")
	r.put("S/1.cbz", 1, 2)
	r.say(created, "S/1.cbz")
	became("Beside|P")
	put("S/metadata.opf", `<package><metadata><title>Changed</title></metadata></package>`)
	put("S/series.json", `{"metadata": {"publisher": "Q"}}`)
	became("Changed|Q")
	for _, key := range []string{"S/metadata.opf", "S/series.json"} {
		r.remove(key)
		r.say(removed, key)
	}
	became("1")
	r.idle()
	if n := r.count("select count(*) from sidecar"); n != 0 {
		t.Errorf("%d sidecars are left", n)
	}
}

// A moved file yields two notifications, in either order: the book stays the same, and so does the series when its last
// book has moved.
func TestMovesAreAnnouncedInEitherOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	lib := r.library(r.tenant, "", "file_order")
	r.work()
	for i := range 4 {
		r.put(fmt.Sprintf("Old/%d.cbz", i), i, 2+i)
		r.say(created, fmt.Sprintf("Old/%d.cbz", i))
	}
	r.idle()
	before := rows[string](r, "select k.id::text || s.id from book k join series s on s.id = k.series_id order by k.key")
	for i := range 4 {
		from, to := fmt.Sprintf("Old/%d.cbz", i), fmt.Sprintf("New/%d.cbz", i)
		r.put(to, i, 2+i)
		r.remove(from)
		if i%2 == 0 {
			r.say(created, to)
			r.idle() // by now it is a separate book
			r.say(removed, from)
		} else {
			r.say(removed, from)
			r.say(created, to)
		}
	}
	r.idle()
	if after := rows[string](r, "select k.id::text || s.id from book k join series s on s.id = k.series_id order by k.key"); !slices.Equal(before, after) {
		t.Errorf("books and series %q, before %q", after, before)
	}
	if got := rows[string](r, "select path || book_count from series"); !slices.Equal(got, []string{"New4"}) {
		t.Errorf("series %q", got)
	}
	if got := rows[string](r, "select key || number from book where deleted_at is null order by key"); !slices.Equal(got, []string{"New/0.cbz1", "New/1.cbz2", "New/2.cbz3", "New/3.cbz4"}) {
		t.Errorf("numbers %q", got)
	}
	before = r.state(lib)
	r.startScan(lib)
	r.idle()
	if after := r.state(lib); !slices.Equal(before, after) {
		t.Errorf("a scan changed\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// Files that take each other's names are announced one by one, in any order, concurrently or while they change: the
// books follow their content, and no progress is lost.
func TestShiftsAreAnnouncedInAnyOrder(t *testing.T) {
	t.Parallel()
	shift := [][2]int{{5, 4}, {4, 3}, {3, 2}, {2, 1}, {1, 0}} // target, content; 0 is nothing
	swap := [][2]int{{1, 4}, {4, 1}}
	for name, c := range map[string]struct {
		steps [][2]int
		order []int // of the notifications; nil: each after its step
		want  []string
	}{
		"shift, as it happens": {steps: shift, want: []string{"S/2.cbz 1", "S/3.cbz 2", "S/4.cbz 3", "S/5.cbz 4"}},
		"shift, forward":       {steps: shift, order: []int{1, 2, 3, 4, 5}, want: []string{"S/2.cbz 1", "S/3.cbz 2", "S/4.cbz 3", "S/5.cbz 4"}},
		"shift, backward":      {steps: shift, order: []int{5, 4, 3, 2, 1}, want: []string{"S/2.cbz 1", "S/3.cbz 2", "S/4.cbz 3", "S/5.cbz 4"}},
		"shift, mixed":         {steps: shift, order: []int{3, 5, 1, 4, 2}, want: []string{"S/2.cbz 1", "S/3.cbz 2", "S/4.cbz 3", "S/5.cbz 4"}},
		"swap":                 {steps: swap, order: []int{1, 4}, want: []string{"S/1.cbz 4", "S/2.cbz 2", "S/3.cbz 3", "S/4.cbz 1"}},
		"swap, as it happens":  {steps: swap, want: []string{"S/1.cbz 4", "S/2.cbz 2", "S/3.cbz 3", "S/4.cbz 1"}},
		"shift for a new one": {steps: append(slices.Clone(shift[:4]), [2]int{1, 9}), order: []int{2, 1, 3, 5, 4},
			want: []string{"S/1.cbz new", "S/2.cbz 1", "S/3.cbz 2", "S/4.cbz 3", "S/5.cbz 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			lib := r.library(r.tenant, "", "smart")
			r.work()
			key := func(n int) string { return fmt.Sprintf("S/%d.cbz", n) }
			for n := 1; n <= 4; n++ {
				r.put(key(n), n, 1+n)
				r.say(created, key(n))
			}
			r.idle()
			r.exec("insert into account (tenant_id, id, username, email, password_hash, role) values ($1, gen_random_uuid(), 'ann', 'ann@example.org', '', 'reader')", r.tenant)
			r.exec("insert into progress (tenant_id, account_id, book_id, id, current_page) select a.tenant_id, a.id, b.id, gen_random_uuid(), b.page_count from account a, book b")
			first := map[string]string{}
			for n := 1; n <= 4; n++ {
				first[rows[string](r, "select id::text from book where key = $1", key(n))[0]] = fmt.Sprint(n)
			}
			for _, s := range c.steps {
				if s[1] == 0 {
					r.remove(key(s[0]))
				} else {
					r.put(key(s[0]), s[1], 1+s[1])
				}
				if c.order == nil {
					r.say(created, key(s[0]))
					r.idle()
				}
			}
			for _, n := range c.order {
				r.say(created, key(n))
				r.idle()
			}
			var got []string
			for _, row := range rows[string](r, "select key || ' ' || id from book where deleted_at is null order by key") {
				at, id, _ := strings.Cut(row, " ")
				got = append(got, at+" "+cmp.Or(first[id], "new"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("books %q, want %q", got, c.want)
			}
			if n := r.count("select count(*) from book b join progress p on p.book_id = b.id where b.deleted_at is null and b.analyzed and p.current_page = b.page_count"); n != 4 {
				t.Errorf("%d books are read to the end, want 4", n)
			}
			before := r.state(lib)
			r.startScan(lib)
			r.idle()
			if after := r.state(lib); !slices.Equal(before, after) {
				t.Errorf("a scan changed\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
		})
	}
}
