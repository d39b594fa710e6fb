package scanner_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/db"
)

// books returns the books in the database.
func (w *world) books() map[uuid.UUID]row {
	w.t.Helper()
	rows, err := db.List[row](w.ctx(), w.db.App, `select b.id, b.series_id, b.key, b.deleted_at is null as live, b.fingerprint, b.size, b.analyzed, b.page_count, b.title, b.number,
		coalesce(m.metadata ->> 'summary', '') as summary, b.created_at, coalesce(p.file_size, -1) as indexed,
		exists (select from displaced d where d.tenant_id = b.tenant_id and d.book_id = b.id and d.at > now() - interval '1 hour') as replaced,
		array(select coalesce((select g.current_page from progress g where g.tenant_id = b.tenant_id and g.book_id = b.id and g.account_id = a.id), 0)
		  from account a where a.tenant_id = b.tenant_id order by a.username) as progress
		from book b left join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant()`)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[uuid.UUID]row{}
	for _, r := range rows {
		out[r.ID] = r
	}
	return out
}

// check compares everything with the expected state, once all is known, and starts over.
func (w *world) check(now map[uuid.UUID]row) {
	w.t.Helper()
	live := map[string]row{}
	for _, r := range now {
		if r.Live {
			live[r.Key] = r
		}
	}
	if got, want := slices.Sorted(maps.Keys(live)), w.keys(); !slices.Equal(got, want) {
		w.t.Errorf("books %q, files %q", got, want)
		return
	}
	for k, f := range w.files {
		if r := live[k]; f.ident != "" && r.ident() != "" {
			w.contents[r.ident()] = f.ident
		}
	}
	w.sameAsNew(live)
	w.followed(now, live)
	w.people1(now)
	w.serieses(now)
	w.sound()
	w.lists(live)
	w.rows = now
	w.known()
	for _, r := range now {
		if r.Live {
			w.kept(r)
		}
	}
}

// kept accepts changes of people's data where they are allowed.
func (w *world) kept(r row) {
	if want := w.wants[r.ID]; want != nil {
		want.pages = [2]int(r.Progress)
	}
}

// followed compares where the books are: a book whose content was in one place all the time must be at that place.
func (w *world) followed(now map[uuid.UUID]row, live map[string]row) {
	owners := map[string][]row{}
	for _, r := range w.rows {
		// Former content may return.
		if c := cmp.Or(w.contentOf(r), w.contents[fmt.Sprintf("%.16s/%d", r.Fingerprint, r.Indexed)]); c != "" {
			owners[c] = append(owners[c], r)
		}
	}
	places := w.places()
	for id, o := range w.rows { // an unread book with a locked field stays itself
		if want := w.wants[id]; o.Live && w.contentOf(o) == "" && want != nil && want.locked() {
			w.touched[w.files[o.Key].ident] = true
		}
	}
	for id, r := range w.rows {
		c := w.contentOf(r)
		known := c != "" && len(owners[c]) == 1 && !w.double[c]
		// Its pages are still at the same place.
		retagged := w.files[r.Key].ident != c && path.Dir(w.files[r.Key].ident) == path.Dir(c)
		sure := known && !w.touched[c] && !w.unclear && !w.lost[id] && !r.Replaced && !retagged
		if _, is := now[id]; !is {
			// An unread book belongs to nobody: the book of the content at its place replaces it, and gets its
			// progress. The same holds for a book that lost its content if that appeared elsewhere within the hour and
			// was not read; after aging, the order of notifications is unknown. And a book without a file may be
			// purged.
			taken := w.partial && w.wants[id] == nil && (w.unclear || time.Since(r.Created) < time.Hour)
			purged := w.style.purges && !(sure && len(places[c]) == 1)
			if known && !taken && !purged {
				w.t.Errorf("the book of %s (%s) is no more", r.Key, c)
			}
			continue
		}
		switch {
		case sure && len(places[c]) == 1:
			at := live[places[c][0]]
			if at.ID != id {
				w.t.Errorf("%s is at %s now, but its book, which was at %s (live %v), is at %s (live %v)", c, at.Key, r.Key, r.Live, now[id].Key, now[id].Live)
			}
		case sure && r.Live && !w.partial && len(places[c]) == 0 && w.files[r.Key].name != "" && len(owners[w.files[r.Key].ident]) == 0:
			if live[r.Key].ID != id {
				w.t.Errorf("%s was replaced by %s, but its book is not there any more: %+v", r.Key, w.files[r.Key].name, now[id])
			}
		}
	}
}

// people1 compares people's data of books.
func (w *world) people1(now map[uuid.UUID]row) {
	for id, want := range w.wants {
		r, is := now[id]
		if !is && w.style.purges { // see followed
			delete(w.wants, id)
			continue
		}
		if !is {
			if want.locked() {
				w.t.Errorf("a book with locked fields is no more: %+v", want)
			}
			for user, page := range want.pages {
				if page > 0 && !slices.ContainsFunc(slices.Collect(maps.Values(now)), func(r row) bool { return r.Progress[user] > 0 }) {
					w.t.Errorf("what user %d has read is lost", user)
				}
			}
			delete(w.wants, id)
			continue
		}
		if !r.Created.Equal(want.created) {
			w.t.Errorf("%s was created at %s, now at %s", r.Key, want.created, r.Created)
		}
		if want.title != "" && r.Title != want.title {
			w.t.Errorf("%s has the title %q, not the locked one %q", r.Key, r.Title, want.title)
		}
		if want.summary != "" && r.Summary != want.summary {
			w.t.Errorf("%s has the summary %q, not the locked one %q", r.Key, r.Summary, want.summary)
		}
		if want.number != nil && r.Live && (r.Number == nil || *r.Number != *want.number) {
			w.t.Errorf("%s has the number %v, not the locked one %v", r.Key, text(r.Number), *want.number)
		}
		before, knew := w.rows[id]
		for user, page := range want.pages {
			got := r.Progress[user]
			switch stays := knew && w.contentOf(before) != "" && w.contentOf(before) == w.contentOf(r); {
			case page == 0: // another book's may have been added
			case got == 0:
				w.t.Errorf("user %d was on page %d of %s, and is nowhere now", user, page, r.Key)
			case got != page && stays && !w.unclear && !w.double[w.contentOf(r)]:
				w.t.Errorf("user %d was on page %d of %s, and is on %d now", user, page, r.Key, got)
			}
		}
	}
	for _, r := range now {
		for user, page := range r.Progress {
			if r.Pages > 0 && page > r.Pages {
				w.t.Errorf("user %d is on page %d of %s (live %v), which has %d", user, page, r.Key, r.Live, r.Pages)
			}
		}
	}
}

// serieses compares people's titles of series, and checks that a series continues if all its books came to a new
// folder.
func (w *world) serieses(now map[uuid.UUID]row) {
	shelf := map[uuid.UUID]bool{}
	for _, id := range values[uuid.UUID](w.rig, "select id from series where tenant_id = app.tenant()") {
		shelf[id] = true
	}
	for id, title := range w.titles {
		if !shelf[id] {
			delete(w.titles, id)
		} else if got := values[string](w.rig, "select title from series where tenant_id = app.tenant() and id = $1", id); got[0] != title {
			w.t.Errorf("series %q has the title %q", title, got[0])
		}
	}
	for id := range w.shelf {
		where := map[uuid.UUID]bool{}
		for book, r := range w.rows {
			if r.Live && r.SeriesID == id {
				where[now[book].SeriesID] = true
			}
		}
		for other := range where {
			if len(where) == 1 && other != uuid.Nil && !shelf[id] && !w.shelf[other] && !w.partial && !w.unclear && !w.style.byMetadata() {
				w.t.Errorf("series %s is no more; all its books are in a new one", id)
			}
		}
	}
	w.shelf = shelf
}

func text(n *float64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}

// sameAsNew compares the books with those of a new library of the same folder.
func (w *world) sameAsNew(live map[string]row) {
	c := w.control
	c.exec("delete from library where tenant_id = $1", c.tenant)
	c.exec("delete from task where tenant_id = $1", c.tenant)
	c.library = uuid.New()
	c.shelve(w.prefix, w.style)
	if len(w.files) == 0 {
		return
	}
	id := c.start(scan.Normal)
	for n := 0; ; n++ {
		some := values[uuid.UUID](c, "select id from task where tenant_id = app.tenant() and status = 'pending' order by priority desc, id")
		if len(some) == 0 {
			break
		}
		w.take(w.t.Context(), c, some[0])
	}
	if res := c.result(id); res.Status != "completed" {
		w.t.Fatalf("the scan of a new library: %+v", res)
	}
	ours, news := w.rig.records(), c.records()
	broken := slices.ContainsFunc(slices.Collect(maps.Values(w.files)), func(f file) bool { return f.ident == "" })
	for k, f := range w.files {
		our, fresh := ours[k], news[k]
		if (f.ident == "") == (fresh["error"] == nil) || f.ident != "" && fresh["pages"] != float64(f.pages) {
			w.t.Fatalf("%s is %s, but a new library has %v", k, f.name, fresh)
		}
		if want := w.wants[live[k].ID]; want != nil {
			for _, r := range []map[string]any{our, fresh} {
				metadata, _ := r["metadata"].(map[string]any)
				if want.title != "" {
					for _, name := range []string{"title", "sort", "search"} {
						delete(r, name)
					}
					delete(metadata, "title")
				}
				if want.number != nil {
					delete(r, "number")
					delete(metadata, "number")
				}
				if want.summary != "" {
					delete(metadata, "summary")
				}
			}
		}
		for name := range fresh {
			if f.ident == "" && (!slices.Contains([]string{"error", "message", "series", "analyzed", "size", "modified"}, name) || name == "series" && w.style.byMetadata()) {
				continue
			}
			if broken && w.style.byMetadata() && (name == "number" || w.style.book == "series_name" && slices.Contains([]string{"title", "sort", "search"}, name)) {
				continue // positions in a series that has another book
			}
			if !reflect.DeepEqual(our[name], fresh[name]) {
				w.t.Errorf("%s (%s): %s is %v, of a new library %v", k, f.name, name, our[name], fresh[name])
			}
		}
	}
	own := values[string](w.rig, "select path from series where tenant_id = app.tenant() and locks <> '{}'")
	if ours, news := w.rig.shelves(w.style, own), c.shelves(w.style, own); !slices.Equal(ours, news) {
		w.t.Errorf("series %q, of a new library %q", ours, news)
	}
}

// records returns all data of the live books, by key.
func (r *rig) records() map[string]map[string]any {
	r.t.Helper()
	out := map[string]map[string]any{}
	for _, data := range values[string](r, `select jsonb_build_object('key', b.key, 'title', b.title, 'sort', b.title_sort, 'search', b.search_title, 'number', b.number, 'volume', b.volume,
		'chapter', b.chapter, 'direction', b.reading_direction, 'pages', b.page_count, 'analyzed', b.analyzed, 'error', b.error_type, 'message', b.error_message, 'format', b.format,
		'fingerprint', b.fingerprint, 'size', b.size, 'modified', b.modified_at, 'series', s.path, 'metadata', m.metadata, 'warnings', m.warnings, 'besides', b.sidecar is not null,
		'index', to_jsonb(p) - 'tenant_id' - 'book_id' - 'revision', 'unsure', p.revision < 0,
		'links', (select jsonb_agg(x.source_name || x.url order by 1) from external_link x where x.tenant_id = b.tenant_id and x.book_id = b.id),
		'ids', (select jsonb_agg(x.source || x.external_id order by 1) from external_id x where x.tenant_id = b.tenant_id and x.book_id = b.id))::text
		from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		left join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id
		left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant() and b.deleted_at is null`) {
		record := map[string]any{}
		if err := json.Unmarshal([]byte(data), &record); err != nil {
			r.t.Fatal(err)
		}
		out[fmt.Sprint(record["key"])] = record
	}
	return out
}

// shelves returns the series that have books, or readable books, without the titles in own.
func (r *rig) shelves(how style, own []string) []string {
	return values[string](r, `select concat_ws('|', s.path, s.name, case when s.path <> all($2) then s.title || '|' || s.title_sort || '|' || s.search_title end, count(*), sum(b.size))
		from series s join book b on b.tenant_id = s.tenant_id and b.series_id = s.id
		where s.tenant_id = app.tenant() and b.deleted_at is null and (b.analyzed or not $1) group by s.tenant_id, s.id order by s.path`, how.byMetadata(), own)
}

// sound checks invariants of all tables.
func (w *world) sound() {
	w.t.Helper()
	if _, err := (&pack.Expirer{System: w.db.System, Media: w.s3.Config.Media(), Bucket: "media"}).Expire(w.t.Context(), time.Now()); err != nil {
		w.t.Error(err)
	}
	for _, bad := range values[string](w.rig, `
		select 'counters of series ' || s.path from series s where s.tenant_id = app.tenant() and (s.book_count, s.file_size, s.page_count) is distinct from
		  (select (count(*), coalesce(sum(size), 0)::bigint, coalesce(sum(page_count), 0)::bigint) from book b where b.tenant_id = s.tenant_id and b.series_id = s.id and b.deleted_at is null)
		union all select 'counters of the library: ' || c::text from library_count c where c.tenant_id = app.tenant() and (c.books, c.bytes, c.pages, c.series) is distinct from
		  (select (count(*), coalesce(sum(size), 0)::bigint, coalesce(sum(page_count), 0)::bigint, (select count(*) from series s where s.tenant_id = c.tenant_id and s.library_id = c.library_id))
		   from book b where b.tenant_id = c.tenant_id and b.library_id = c.library_id and b.deleted_at is null)
		union all select 'series without any book: ' || path from series s where tenant_id = app.tenant()
		  and not exists (select from book b where b.tenant_id = s.tenant_id and b.series_id = s.id)
		union all select 'book of a series of another library: ' || key from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		  where b.tenant_id = app.tenant() and s.library_id <> b.library_id
		union all select 'task: ' || type || ' ' || status || ' ' || coalesce(last_error, '') from task where tenant_id = app.tenant()
		  and (status in ('pending', 'running') or status = 'failed' and type not in ('scan_library', 'pack_book') or status = 'completed' and open_children <> 0)
		union all select 'live book without index: ' || b.key from book b where b.tenant_id = app.tenant() and b.deleted_at is null and b.analyzed
		  and not exists (select from page_index p where p.tenant_id = b.tenant_id and p.book_id = b.id)
		union all select 'book neither read nor with an error: ' || key from book where tenant_id = app.tenant() and deleted_at is null and analyzed = (error_type is not null)
		union all select 'sidecar that was not read: ' || key from sidecar k where tenant_id = app.tenant() and pending
		  and (kind <> 'opf' or exists (select from book b where b.tenant_id = k.tenant_id and b.library_id = k.library_id and b.analyzed and b.deleted_at is null and b.sidecar = k.version))
		union all select 'page pack of no book' from page_pack k where tenant_id = app.tenant()
		  and not exists (select from book b where b.tenant_id = k.tenant_id and b.id = k.book_id and b.fingerprint = k.fingerprint)
		union all select 'book whose page pack was not made: ' || b.key from book b join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		  where b.tenant_id = app.tenant() and b.deleted_at is null and b.analyzed and $1 and 0 <> all(p.methods) and 8 <> all(p.methods)
		  and not exists (select from page_pack k where k.tenant_id = b.tenant_id and k.book_id = b.id and k.fingerprint = b.fingerprint)
		union all select 'page pack of other pages: ' || b.key from book b join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		  join page_pack k on k.tenant_id = b.tenant_id and k.book_id = b.id and k.fingerprint = b.fingerprint where b.tenant_id = app.tenant() and b.analyzed and k.crcs <> p.crcs
		union all select 'deadlock: ' || type from task where tenant_id = app.tenant() and last_error like '%deadlock%'
		union all select 'scan: ' || s::text from scan s join task t on t.tenant_id = s.tenant_id and t.id = s.id where s.tenant_id = app.tenant()
		  and (least(files_total, files_processed, series_created, books_created, books_updated, books_deleted, books_restored, books_moved, error_count) < 0
		    or files_processed > files_total or t.status = 'completed' and files_processed <> files_total)`, w.style.packs) {
		w.t.Errorf("unsound: %s", bad)
	}
	if got, want := values[string](w.rig, "select key from sidecar where tenant_id = app.tenant() order by 1"), slices.Sorted(maps.Keys(w.beside)); !slices.Equal(got, want) {
		w.t.Errorf("sidecars %q, there are %q", got, want)
	}
}

// lists compares the totals in the API.
func (w *world) lists(live map[string]row) {
	failed := 0
	for _, r := range live {
		if !r.Analyzed {
			failed++
		}
	}
	serieses := len(values[uuid.UUID](w.rig, "select id from series where tenant_id = app.tenant()"))
	for _, c := range []struct {
		path  string
		total int
	}{{"/api/v1/books?pageSize=500", len(live)}, {"/api/v1/books?pageSize=500&libraryId=" + w.library.String(), len(live)},
		{"/api/v1/books/errors?pageSize=500", failed}, {"/api/v1/series?pageSize=500", serieses}} {
		var page struct {
			Data  []json.RawMessage `json:"data"`
			Total int               `json:"total"`
		}
		w.api(0, "GET", c.path, nil, 200).JSON(&page)
		if page.Total != c.total || len(page.Data) != c.total {
			w.t.Errorf("%s lists %d of %d, there are %d", strings.SplitN(c.path, "?", 2)[0], len(page.Data), page.Total, c.total)
		}
	}
}

// counts compares the counts of a scan with the changes of the books.
func (w *world) counts(before, now map[uuid.UUID]row, res result) {
	var want result
	for id, r := range now {
		b, was := before[id]
		switch {
		case !was && r.Live:
			want.Created++
		case !was: // added and deleted
			want.Errors = -1
		case b.Live && !r.Live:
			want.Deleted++
		case r.Live && b.Key != r.Key:
			want.Moved++
		case !b.Live && r.Live:
			want.Restored++
		}
	}
	var unread int64 // no longer existing: purged, or matched with another book since it was first read
	for id, b := range before {
		if _, is := now[id]; is || !b.Live || !w.style.purges {
			continue
		}
		if b.Fingerprint == "" {
			unread++
		} else {
			want.Deleted++
		}
	}
	want.Deleted += min(unread, max(res.Deleted-want.Deleted, 0))
	// A restored book whose name another takes counts both ways.
	if both := res.Restored - want.Restored; both > 0 {
		want.Restored, want.Deleted = want.Restored+both, want.Deleted+both
	}
	if res.Created != want.Created || res.Deleted != want.Deleted || res.Moved != want.Moved || res.Restored != want.Restored {
		w.t.Errorf("the scan counts %d created, %d deleted, %d moved, %d restored; there are %d, %d, %d, %d",
			res.Created, res.Deleted, res.Moved, res.Restored, want.Created, want.Deleted, want.Moved, want.Restored)
	}
}
