package scanner_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/scan/scanner"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// two are libraries of one tenant, in the folders a and b of one bucket.
type two struct {
	*rig
	a, b uuid.UUID
}

// newTwo creates a series S of three books in the first library, all with progress and people's data, and other books
// in both.
func newTwo(t *testing.T) *two {
	t.Helper()
	r := &two{rig: newRig(t), b: uuid.New()}
	r.a = r.library
	r.exec("update library set name = 'a', prefix = 'a/' where id = $1", r.a)
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'b', '/books/b', 'books', 'b/', 'series_volume', 'metadata_first', 'smart')`, r.tenant, r.b)
	for i := range 4 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("a/Other/%d.cbz", i), testkit.Comic(t, 9000+i, 1, ""))
		testkit.WriteFile(t, r.folder, fmt.Sprintf("b/Other/%d.cbz", i), testkit.Comic(t, 9100+i, 1, ""))
	}
	for n := 1; n <= 3; n++ {
		testkit.WriteFile(t, r.folder, "a/"+numbered(n), r.numbered(n))
	}
	r.scans(r.a, r.b)
	for n := 1; n <= 3; n++ {
		r.read("ann", numbered(n), n)
	}
	r.exec(`update book_metadata m set locks = '{titleLock}', metadata = metadata || '{"title": "Mine"}' from book b where b.id = m.book_id and b.key = $1`, numbered(1))
	r.exec("update book set title = 'Mine' where key = $1", numbered(1))
	r.exec("update series set title = 'My S', locks = '{title}', summary = 'Mine' where path = 'S'")
	return r
}

// scans scans libraries one after the other, and runs all tasks that follow.
func (r *two) scans(libraries ...uuid.UUID) {
	r.t.Helper()
	for _, r.library = range libraries {
		r.scanned("normal")
		(&run{rig: r.rig}).settled()
	}
}

// places returns, for every book of the series, id, library, key, series, title, file and readers; - marks a missing
// book.
func (r *two) places() []string {
	r.t.Helper()
	return values[string](r.rig, `select concat_ws(' | ', b.id, case when b.deleted_at is null then '' else '-' end || l.name || '/' || b.key, s.title, b.title,
		case when b.analyzed and array_length(p.names, 1) = b.page_count and p.revision = b.revision then 'read' end, case when s.library_id <> b.library_id then 'astray' end,
		(select string_agg(a.username || ' ' || g.current_page, ', ' order by a.username) from progress g join account a on a.tenant_id = g.tenant_id and a.id = g.account_id
		 where g.tenant_id = b.tenant_id and g.book_id = b.id))
		from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant() and b.key not like 'Other/%' order by b.key`)
}

// counted checks the counters of libraries and series.
func (r *two) counted() {
	r.t.Helper()
	for _, wrong := range values[string](r.rig, `select l.name || ': ' || c.books || ' books, ' || c.series || ' series, ' || c.bytes || ' bytes' from library l join library_count c on c.tenant_id = l.tenant_id and c.library_id = l.id
		where l.tenant_id = app.tenant() and (c.books, c.bytes, c.series) <> (select count(*), coalesce(sum(size), 0), (select count(*) from series s where s.tenant_id = l.tenant_id and s.library_id = l.id)
		  from book b where b.tenant_id = l.tenant_id and b.library_id = l.id and b.deleted_at is null)
		union all select s.path || ': ' || s.book_count from series s where s.tenant_id = app.tenant()
		  and s.book_count <> (select count(*) from book b where b.tenant_id = s.tenant_id and b.series_id = s.id and b.deleted_at is null)`) {
		r.t.Errorf("counted wrong: %s", wrong)
	}
}

func (r *two) ids() map[int]string {
	r.t.Helper()
	out := map[int]string{}
	for n := 1; n <= 3; n++ {
		out[n] = values[string](r.rig, "select id::text from book where tenant_id = app.tenant() and key = $1", numbered(n))[0]
	}
	return out
}

// moved checks that the first book is in the other library, with these readers, and all else unchanged.
func (r *two) moved(id map[int]string, readers string) {
	r.t.Helper()
	same(r.t, "books", r.places(), []string{
		id[1] + " | b/T/one.cbz | T | Mine | read | " + readers,
		id[2] + " | a/S/02.cbz | My S | Title 2 | read | ann 2",
		id[3] + " | a/S/03.cbz | My S | Title 3 | read | ann 3",
	})
	r.counted()
}

// purged purges a library on request.
func (r *rig) purged(library uuid.UUID) {
	r.t.Helper()
	r.exec("insert into task (tenant_id, id, type, priority, library_id, params) values ($1, gen_random_uuid(), 'purge_deleted', 1, $2, '{}')", r.tenant, library)
	r.until("not exists (select from task where tenant_id = app.tenant() and type = 'purge_deleted' and status in ('pending', 'running'))")
}

// ways are the orders in which two libraries notice a file that moved from one to the other.
var ways = map[string]func(r *two, from, to string){
	"the scan that misses it first": func(r *two, _, _ string) { r.scans(r.a, r.b) },
	"the scan that finds it first":  func(r *two, _, _ string) { r.scans(r.b, r.a) },
	"announced, removal first": func(r *two, from, to string) {
		r.announced(r.a, from)
		r.announced(r.b, to)
	},
	"announced, creation first": func(r *two, from, to string) {
		r.announced(r.b, to)
		r.announced(r.a, from)
	},
	"announced, read last": func(r *two, from, to string) {
		r.library = r.b
		r.noticed(to)
		r.library = r.a
		r.noticed(from)
		(&run{rig: r.rig}).settled()
	},
}

func (r *two) announced(library uuid.UUID, key string) {
	r.t.Helper()
	r.library = library
	r.noticed(key)
	(&run{rig: r.rig}).settled()
}

func TestBookMovesToAnotherLibrary(t *testing.T) {
	t.Parallel()
	for name, learn := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			id := r.ids()
			r.events = nil
			r.rename("a/"+numbered(1), "b/T/one.cbz")
			learn(r, "a/"+numbered(1), "b/T/one.cbz")
			r.moved(id, "ann 1")
			told := func(kind string, library uuid.UUID) bool {
				return slices.ContainsFunc(r.events, func(e events.Event) bool {
					data, _ := json.Marshal(e.Data)
					return e.Kind == kind && strings.Contains(string(data), id[1]) && strings.Contains(string(data), library.String())
				})
			}
			if !told("book_deleted", r.a) || !told("book_updated", r.b) {
				t.Errorf("events %+v", r.events)
			}
		})
	}
}

// chosen adds the series of a folder and a book to a collection and a read list of that name; ann wants to read them,
// too.
func (r *two) chosen(name, folder, key string) {
	r.t.Helper()
	ann := uuid.NewSHA1(uuid.Nil, []byte("ann"))
	library, path, _ := strings.Cut(folder, "/")
	for kind, column := range map[string]string{"series": "series_id", "books": "book_id"} {
		id := uuid.New()
		r.exec("insert into collection (tenant_id, id, kind, name) values ($1, $2, $3, $4)", r.tenant, id, kind, name)
		thing := "select s.id from series s join library l on l.tenant_id = s.tenant_id and l.id = s.library_id where s.tenant_id = $1 and l.name = $2 and s.path = $3"
		args := []any{r.tenant, library, path}
		if kind == "books" {
			thing = "select b.id from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id where b.tenant_id = $1 and l.name = $2 and b.key = $3"
			args[2] = key
		}
		r.exec("insert into collection_member (tenant_id, id, collection_id, "+column+", place) select $1, gen_random_uuid(), $4, id, 1 from ("+thing+") x", append(args, id)...)
		r.exec("insert into wanted (tenant_id, account_id, id, "+column+", place) select $1, $4, gen_random_uuid(), id, 1 from ("+thing+") x", append(args, ann)...)
		r.exec("insert into external_id (tenant_id, id, "+column+", source, external_id) select $1, gen_random_uuid(), id, $4, 'x' from ("+thing+") x", append(args, name)...)
		r.exec("insert into external_link (tenant_id, id, "+column+", source_name, url) select $1, gen_random_uuid(), id, $4, 'http://x' from ("+thing+") x", append(args, name)...)
		owner := strings.TrimSuffix(column, "_id")
		r.exec("insert into "+owner+"_cover (tenant_id, id, "+column+", fingerprint, type, image, size) select $1, gen_random_uuid(), id, $4, 'image/gif', 'x', 1 from ("+thing+") x", append(args, name)...)
		r.exec("update "+owner+" s set cover_source = 'custom:' || c.id from "+owner+"_cover c where c."+column+" = s.id and c.fingerprint = $1", name)
		for _, table := range []string{"genre", "tag"} {
			r.exec("insert into "+table+" (tenant_id, id, name) values ($1, $2, $3) on conflict (tenant_id, lower(name)) do nothing", r.tenant, id, name)
			r.exec("insert into "+owner+"_"+table+" (tenant_id, "+column+", "+table+"_id) select $1, x.id, g.id from ("+thing+") x, "+table+" g where g.tenant_id = $1 and g.name = $4", append(args, name)...)
		}
		if kind == "books" {
			continue
		}
		r.exec("insert into series_rating (tenant_id, account_id, series_id, id, rating, notes) select $1, $4, id, gen_random_uuid(), 50, $5 from ("+thing+") x", append(args, ann, name)...)
		r.exec("insert into external_rating (tenant_id, id, series_id, source_name, rating) select $1, gen_random_uuid(), id, $4, 50 from ("+thing+") x", append(args, name)...)
		r.exec("insert into alternate_title (tenant_id, id, series_id, label, title) select $1, gen_random_uuid(), id, $4, $4 from ("+thing+") x", append(args, name)...)
		r.exec("insert into sharing_tag (tenant_id, id, name) values ($1, $2, $3)", r.tenant, id, name)
		r.exec("insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select $1, id, $4 from ("+thing+") x", append(args, id)...)
	}
}

// members returns the collections and read lists with their members.
func (r *two) members() []string {
	r.t.Helper()
	return values[string](r.rig, `select c.name || ' ' || coalesce(m.book_id, m.series_id) from collection_member m
		join collection c on c.tenant_id = m.tenant_id and c.id = m.collection_id where m.tenant_id = app.tenant()`)
}

// said returns people's data of series and books.
func (r *two) said() []string {
	r.t.Helper()
	return values[string](r.rig, `select what || ' ' || name || ' ' || id from (
		select 'rating', notes, series_id from series_rating where tenant_id = app.tenant()
		union all select 'id', source, coalesce(book_id, series_id) from external_id where tenant_id = app.tenant()
		union all select 'link', source_name, coalesce(book_id, series_id) from external_link where tenant_id = app.tenant() and source_name <> 'comicinfo'
		union all select 'rated', source_name, series_id from external_rating where tenant_id = app.tenant()
		union all select 'title', label, series_id from alternate_title where tenant_id = app.tenant()
		union all select 'cover', fingerprint, series_id from series_cover where tenant_id = app.tenant()
		union all select 'shown', c.fingerprint, s.id from series s join series_cover c on c.tenant_id = s.tenant_id and s.cover_source = 'custom:' || c.id where s.tenant_id = app.tenant()
		union all select 'cover', fingerprint, book_id from book_cover where tenant_id = app.tenant()
		union all select 'shown', c.fingerprint, s.id from book s join book_cover c on c.tenant_id = s.tenant_id and s.cover_source = 'custom:' || c.id where s.tenant_id = app.tenant()
		union all select 'genre', g.name, x.series_id from series_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id where x.tenant_id = app.tenant()
		union all select 'genre', g.name, x.book_id from book_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id where x.tenant_id = app.tenant()
		union all select 'tag', g.name, x.book_id from book_tag x join tag g on g.tenant_id = x.tenant_id and g.id = x.tag_id where x.tenant_id = app.tenant()
		union all select 'sharing', g.name, x.series_id from series_sharing_tag x join sharing_tag g on g.tenant_id = x.tenant_id and g.id = x.sharing_tag_id where x.tenant_id = app.tenant()
		union all select 'tag', g.name, x.series_id from series_tag x join tag g on g.tenant_id = x.tenant_id and g.id = x.tag_id where x.tenant_id = app.tenant()) x(what, name, id)
		where x.name !~ '^(Both|Genre [0-9]+|Tag [0-9]+)$'`) // from the files
}

// A series continues where all its books have gone, and readers' actions in both places count.
func TestSeriesMovesToAnotherLibrary(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"ab", "ba"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			id := r.ids()
			series := values[string](r.rig, "select id::text from series where tenant_id = app.tenant() and path = 'S'")
			r.chosen("Older", "a/S", numbered(2))
			r.rename("a/S", "b/New")
			if order == "ab" {
				r.scans(r.a, r.b)
			} else {
				r.scans(r.b)
				r.exec("update progress set updated_at = now() - interval '1 hour'")
				r.read("ann", "New/02.cbz", 1)
				r.read("bob", "New/02.cbz", 2)
				r.chosen("Newer", "b/New", "New/03.cbz")
				r.scans(r.a)
			}
			second := id[2] + " | b/New/02.cbz | My S | Title 2 | read | ann 2"
			if order == "ba" {
				second = id[2] + " | b/New/02.cbz | My S | Title 2 | read | ann 1, bob 2"
			}
			same(t, "books", r.places(), []string{id[1] + " | b/New/01.cbz | My S | Mine | read | ann 1", second, id[3] + " | b/New/03.cbz | My S | Title 3 | read | ann 3"})
			same(t, "series", values[string](r.rig, "select id || ' ' || path || ' ' || title || ' ' || summary from series where tenant_id = app.tenant() and path <> 'Other'"),
				[]string{series[0] + " New My S Mine"})
			want := []string{"Older " + series[0], "Older " + id[2]}
			if order == "ba" { // the older ones take over what was chosen for the newer ones, without duplicates
				want = append(want, "Newer "+series[0], "Newer "+id[3])
			}
			same(t, "chosen", r.members(), want)
			// The older one's own values win.
			said := []string{"rating Older " + series[0], "shown Older " + series[0], "shown Older " + id[2]}
			if order == "ba" {
				said = append(said, "shown Newer "+id[3])
			}
			for _, what := range []string{"id", "link", "cover", "genre", "tag"} {
				for _, thing := range want {
					said = append(said, what+" "+thing)
				}
			}
			for _, what := range []string{"rated", "title", "sharing"} {
				for _, thing := range want {
					if strings.HasSuffix(thing, series[0]) {
						said = append(said, what+" "+thing)
					}
				}
			}
			same(t, "said", r.said(), said)
			wanted := []string{id[2], series[0]}
			if order == "ba" {
				wanted = append(wanted, id[3])
			}
			same(t, "wanted", values[string](r.rig, "select coalesce(book_id, series_id)::text from wanted where tenant_id = app.tenant()"), wanted)
			r.counted()
		})
	}
}

// Where titles are made of the series' title, books have that of the series with which they have come, or whose locked
// title theirs has inherited.
func TestSeriesMovesToALibraryThatNamesItsBooks(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"ab", "ba", "in parts"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			id := r.ids()
			r.exec("update library set book_strategy = 'series_name', number_strategy = 'file_order' where id = $1", r.b)
			r.exec("update book_metadata set locks = '{}' where tenant_id = $1", r.tenant)
			if order == "in parts" {
				r.rename("a/"+numbered(1), "b/New/01.cbz")
				r.scans(r.a, r.b)
			}
			r.rename("a/S", "b/Newer")
			if order == "in parts" {
				r.rename("b/Newer/02.cbz", "b/New/02.cbz")
				r.rename("b/Newer/03.cbz", "b/New/03.cbz")
			} else {
				r.rename("b/Newer", "b/New")
			}
			if order == "ba" {
				r.scans(r.b, r.a)
			} else {
				r.scans(r.a, r.b)
			}
			same(t, "books", r.places(), []string{
				id[1] + " | b/New/01.cbz | My S | My S v.01 | read | ann 1",
				id[2] + " | b/New/02.cbz | My S | My S v.02 | read | ann 2",
				id[3] + " | b/New/03.cbz | My S | My S v.03 | read | ann 3",
			})
		})
	}
}

// A locked volume of a book that comes from another library counts in its title.
func TestLockedVolumeInALibraryThatNamesItsBooks(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	r.exec("update library set book_strategy = 'series_name', number_strategy = 'file_order' where id = $1", r.b)
	r.exec("update book_metadata m set locks = '{volumeLock}' from book b where b.id = m.book_id and b.key = $1", numbered(1))
	r.exec("update book set volume = 7 where key = $1", numbered(1))
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	r.scans(r.a, r.b)
	same(t, "title", values[string](r.rig, "select title from book where tenant_id = app.tenant() and key = 'T/one.cbz'"), []string{"T v.07"})
}

// A series whose cover somebody has chosen among its books shows it still when that book turns out to be an older one.
func TestChosenCoverOfABookThatTurnsOutToBeAnOlderOne(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	r.rename("a/S", "b/New")
	r.scans(r.b)
	r.exec("update series s set cover_source = 'book:' || b.id from book b where b.series_id = s.id and b.key = 'New/03.cbz'")
	r.scans(r.a)
	same(t, "cover", values[string](r.rig, "select cover_source from series where tenant_id = app.tenant() and path = 'New'"), []string{"book:" + id[3]})
}

// When two books become one, the passes of the newer one's completions are renumbered like those of its sessions.
func TestCompletionsOfTwoBooksThatBecomeOne(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	session := func(key string, pass int, kind string) {
		r.exec(`insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at)
			select $1, $2, gen_random_uuid(), id, $4, $5, 'd', now(), now() from book where tenant_id = $1 and key = $3`,
			r.tenant, uuid.NewSHA1(uuid.Nil, []byte("ann")), key, pass, kind)
	}
	session(numbered(1), 1, "completed")
	session(numbered(1), 2, "reset")
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	r.scans(r.b)
	session("T/one.cbz", 1, "completed")
	r.exec(`insert into completion (tenant_id, id, account_id, book_id, started_at, completed_at, pass)
		select tenant_id, gen_random_uuid(), account_id, book_id, ended_at + n * interval '1 minute', ended_at + n * interval '1 minute', case when n = 0 then 1 end
		from reading_session s cross join generate_series(0, 1) n where exists (select from book b where b.id = s.book_id and b.key = 'T/one.cbz')`)
	r.scans(r.a)
	same(t, "sessions", values[string](r.rig, "select book_id || ' ' || pass || ' ' || kind from reading_session where tenant_id = app.tenant()"),
		[]string{id[1] + " 1 completed", id[1] + " 2 reset", id[1] + " 2 completed"})
	same(t, "completions", values[string](r.rig, "select book_id || ' ' || coalesce(pass::text, 'unknown') from completion where tenant_id = app.tenant()"),
		[]string{id[1] + " 2", id[1] + " unknown"})
}

// Copies, books that were there before, and books with people's data stay separate.
func TestWhatStaysInItsLibrary(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	copyTo := func(from, to string) {
		data, err := os.ReadFile(r.folder + "/" + from)
		if err != nil {
			t.Fatal(err)
		}
		testkit.WriteFile(t, r.folder, to, data)
	}
	for n := 1; n <= 3; n++ {
		copyTo("a/"+numbered(n), fmt.Sprintf("b/T/%d.cbz", n))
	}
	r.scans(r.b, r.a) // all six exist
	own := map[string]string{}
	for _, row := range values[string](r.rig, "select key || ' ' || id from book where tenant_id = app.tenant() and key like 'T/%'") {
		own[row[:7]] = row[8:]
	}
	if err := os.Remove(r.folder + "/a/" + numbered(1)); err != nil {
		t.Fatal(err)
	}
	r.scans(r.b, r.a, r.b) // its copy is older
	r.rename("a/"+numbered(2), "b/T/second.cbz")
	r.scans(r.b)
	r.exec("update book_metadata m set locks = '{summaryLock}' from book b where b.id = m.book_id and b.key = 'T/second.cbz'")
	second := values[string](r.rig, "select id::text from book where tenant_id = app.tenant() and key = 'T/second.cbz'")[0]
	r.scans(r.a)
	same(t, "books", r.places(), []string{
		id[1] + " | -a/S/01.cbz | My S | Mine | read | ann 1",
		id[2] + " | -a/S/02.cbz | My S | Title 2 | read | ann 2",
		id[3] + " | a/S/03.cbz | My S | Title 3 | read | ann 3",
		own["T/1.cbz"] + " | b/T/1.cbz | T | Title 1 | read",
		own["T/2.cbz"] + " | b/T/2.cbz | T | Title 2 | read",
		own["T/3.cbz"] + " | b/T/3.cbz | T | Title 3 | read",
		second + " | b/T/second.cbz | T | Title 2 | read",
	})
	r.counted()
}

// If no worker saw the end of a scan, the next one makes up for it; a purge waits for unread files.
func TestMoveToAnotherLibraryIsMadeUpFor(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	r.scans(r.a)
	unread := "update book set analyzed = false, fingerprint = '' where key = 'T/one.cbz'"
	r.library = r.b
	r.noticed("b/T/one.cbz")
	r.exec(unread)
	r.exec("update task set status = 'cancelled' where type = 'analyze_books' and status = 'pending'")
	r.purged(r.a)
	if got := values[int](r.rig, "select count(*)::integer from book where tenant_id = app.tenant() and key = $1", numbered(1)); got[0] != 1 {
		t.Fatal("purged while its file waits to be read")
	}
	r.exec("alter function app.follow_over rename to follow_over_kept")
	r.scans(r.b)
	r.exec("alter function app.follow_over_kept rename to follow_over")
	r.scans(r.b)
	r.moved(id, "ann 1")
}

// The tasks of a scan that has failed read on: a book that they find follows its file, too.
func TestMoveToAnotherLibraryWhoseScanIsHeld(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	var others []string
	for i := range 12 {
		others = append(others, fmt.Sprintf("b/Other/more %d.cbz", i))
		testkit.WriteFile(t, r.folder, others[i], testkit.Comic(t, 9200+i, 1, ""))
	}
	r.scans(r.b)
	r.remove(others...)
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	r.scans(r.a)
	r.library = r.b
	if res := r.result(r.listed()); res.Status != "failed" || res.Held != 12 {
		t.Fatalf("%+v", res)
	}
	r.idle()
	r.scanWith(scan.Params{Mode: "normal", Removals: 12})
	r.idle()
	r.moved(id, "ann 1")
}

// A worker that fails after it has read a book, or marked one deleted, leaves it to the next attempt that the book
// follows its file.
func TestMoveToAnotherLibraryAfterAFailure(t *testing.T) {
	t.Parallel()
	broken := func(r *two, do func()) {
		r.exec("alter function app.follow_over rename to follow_over_kept")
		do()
		r.exec("alter function app.follow_over_kept rename to follow_over")
	}
	from, to := "a/"+numbered(1), "b/T/one.cbz"
	for name, learn := range map[string]func(r *two){
		"read": func(r *two) {
			r.scans(r.a)
			r.library = r.b
			r.noticed(to)
			broken(r, func() {
				r.take(values[uuid.UUID](r.rig, "select id from task where tenant_id = app.tenant() and type = 'analyze_books' and status = 'pending'")[0])
			})
			r.exec("update task set scheduled_for = now() where status = 'pending'")
			(&run{rig: r.rig}).settled()
		},
		"gone": func(r *two) {
			r.announced(r.b, to)
			broken(r, func() {
				s := &scanner.Scanner{Database: r.db.App, Library: r.s3.Store, Publish: r.publish, Parallel: 2}
				if err := s.Look(r.ctx(), r.tenant, r.a, []string{from}); err == nil {
					t.Error("the look has not failed")
				}
			})
			r.announced(r.a, from)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			id := r.ids()
			r.rename(from, to)
			learn(r)
			r.moved(id, "ann 1")
		})
	}
}

// A book made for the content in another library, while nobody looked, is replaced when the file moves there again.
func TestMoveToAnotherLibraryAgain(t *testing.T) {
	t.Parallel()
	for _, readThere := range []bool{false, true} {
		t.Run(fmt.Sprintf("read there %t", readThere), func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			id := r.ids()
			there, back := "b/T/one.cbz", "a/"+numbered(1)
			r.rename(back, there)
			r.scans(r.b) // the first library is not scanned, so the file is a separate book there
			if readThere {
				r.read("bob", "T/one.cbz", 2)
			}
			r.rename(there, back)
			r.scans(r.b, r.a)
			r.rename(back, there)
			r.scans(r.b, r.a)
			readers := "ann 1"
			if readThere {
				readers = "ann 1, bob 2"
			}
			r.moved(id, readers)
		})
	}
}

// A library that purges on scan keeps what people have read or edited until the other one was scanned.
func TestPurgeOnScanWaitsForTheOtherLibrary(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	r.exec("update library set purge_deleted_on_scan = true where id = $1", r.a)
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	if err := os.Remove(r.folder + "/a/" + numbered(2)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(r.folder + "/a/Other/1.cbz"); err != nil { // nobody has read it
		t.Fatal(err)
	}
	r.scans(r.a)
	if got := values[string](r.rig, "select key from book where tenant_id = app.tenant() and library_id = $1 and key in ('Other/1.cbz', $2, $3) order by key", r.a, numbered(1), numbered(2)); !slices.Equal(got, []string{numbered(1), numbered(2)}) {
		t.Errorf("after the purge there are %q", got)
	}
	r.scans(r.b)
	third := id[3] + " | a/S/03.cbz | My S | Title 3 | read | ann 3"
	same(t, "books", r.places(), []string{
		id[1] + " | b/T/one.cbz | T | Mine | read | ann 1",
		id[2] + " | -a/S/02.cbz | My S | Title 2 | read | ann 2",
		third,
	})
	r.scans(r.a)
	same(t, "books", r.places(), []string{id[1] + " | b/T/one.cbz | T | Mine | read | ann 1", third})
	r.counted()
}

// A purge after a scan does not rely on a scan of another library that began before what that library covers changed.
func TestPurgeOnScanWaitsForAnotherLibraryThatHasChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ out, in string }{
		"exclusions": {"excluded_patterns = 'T/**'", "excluded_patterns = null"},
		"folder":     {"prefix = 'b/Other/'", "prefix = 'b/'"},
		"formats":    {"allowed_formats = '{CBZ}'", "allowed_formats = null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			id := r.ids()
			r.exec("update library set purge_deleted_on_scan = true where id = $1", r.a)
			r.exec("update library set "+c.out+" where id = $1", r.b)
			r.rename("a/"+numbered(1), "c/one.cbz")
			r.scans(r.a, r.b)
			r.rename("c/one.cbz", "b/T/one.cbz")
			r.exec("update library set "+c.in+" where id = $1", r.b)
			r.scans(r.a)
			same(t, "gone", r.gone(), []string{numbered(1)})
			r.scans(r.b)
			r.moved(id, "ann 1")
			r.remove("a/" + numbered(2))
			r.scans(r.a, r.b)
			r.exec("update library set name = 'c' where id = $1", r.b) // covers the same
			r.scans(r.a)
			same(t, "gone", r.gone(), nil)
		})
	}
}

// A purge on request keeps the book while a scan of another library has found the file but not matched it.
func TestPurgeDuringAScanOfTheOtherLibrary(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	r.rename("a/"+numbered(1), "b/T/one.cbz")
	r.scans(r.a)
	r.exec("alter function app.follow_over rename to follow_over_kept") // it dies at the end of its scan
	r.scans(r.b)
	r.exec("alter function app.follow_over_kept rename to follow_over")
	r.purged(r.a)
	r.scans(r.b)
	r.moved(id, "ann 1")
}

// A file that moved to another library is found by the next complete scan, even if the previous one is long ago and
// only a folder was scanned since.
func TestMovedOverLongAfterTheLastScan(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	r.exec("update task set created_at = created_at - interval '10 days', completed_at = completed_at - interval '10 days' where tenant_id = $1", r.tenant)
	r.rename("a/S/01.cbz", "b/T/one.cbz")
	r.scans(r.b)
	r.library = r.a
	r.scanWith(scan.Params{Mode: scan.Normal, Path: "Other"})
	if _, err := task.Forget(t.Context(), r.db.System, time.Minute); err != nil {
		t.Fatal(err)
	}
	r.scans(r.a)
	r.moved(id, "ann 1")
}

// Books that moved to another library follow their files even if the first scans that could have missed them failed.
func TestMovedOverWhileScansFail(t *testing.T) {
	t.Parallel()
	const many = 20
	for name, meanwhile := range map[string]func(r *two){
		"held": func(r *two) {
			if res := r.scan(scan.Normal); res.Status != task.Failed || res.Held != many {
				t.Errorf("%+v", res)
			}
		},
		"cancelled": func(r *two) {
			if _, err := task.Cancel(r.ctx(), r.db.App, r.start(scan.Normal)); err != nil {
				t.Error(err)
			}
			r.scanWith(scan.Params{Mode: scan.Normal, Path: "Other"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			for i := range many {
				testkit.WriteFile(t, r.folder, fmt.Sprintf("a/Many/%02d.cbz", i), testkit.Comic(t, 7000+i, 1, ""))
			}
			r.scans(r.a)
			const books = "select l.name || ' ' || b.id from book b join library l on l.id = b.library_id where b.tenant_id = app.tenant() and b.key like 'Many/%' and b.deleted_at is null order by b.key"
			want := values[string](r.rig, books)
			for i := range want {
				want[i] = strings.Replace(want[i], "a ", "b ", 1)
			}
			r.rename("a/Many", "b/Many")
			r.scans(r.b)
			r.library = r.a
			meanwhile(r)
			if res := r.scanWith(scan.Params{Mode: scan.Normal, Removals: many}); res.Status != task.Completed || res.Deleted != many {
				t.Fatalf("%+v", res)
			}
			same(t, "books", values[string](r.rig, books), want)
			r.counted()
		})
	}
}

// A book whose file was replaced before it moved to another library can be matched by either content.
func TestReplacedFileMovesOver(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	id := r.ids()
	testkit.WriteFile(t, r.folder, "a/S/02.cbz", r.numbered(20))
	r.announced(r.a, "a/S/02.cbz")
	r.rename("a/S/02.cbz", "b/T/two.cbz")
	r.announced(r.b, "b/T/two.cbz")
	r.announced(r.a, "a/S/02.cbz")
	testkit.WriteFile(t, r.folder, "a/S/05.cbz", r.numbered(2))
	r.announced(r.a, "a/S/05.cbz")
	same(t, "books", values[string](r.rig, `select concat_ws(' ', l.name || '/' || b.key, s.path, b.title, case when b.id = $1 then 'known' end, case when s.library_id <> b.library_id then 'astray' end)
		from book b join library l on l.id = b.library_id join series s on s.id = b.series_id
		where b.tenant_id = app.tenant() and b.deleted_at is null and b.key not like 'Other/%'`, id[2]),
		[]string{"a/S/01.cbz S Mine", "a/S/03.cbz S Title 3", "a/S/05.cbz S Title 2", "b/T/two.cbz T Title 20 known"})
	r.counted()
}
