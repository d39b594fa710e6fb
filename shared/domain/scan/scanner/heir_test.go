package scanner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// heirs returns what is left of the series S: what people have chosen for it, and the series that has it, with its
// texts.
func (r *two) heirs() []string {
	r.t.Helper()
	out := values[string](r.rig, `select 'series ' || l.name || '/' || s.path || ' ' || s.title || ' ' || coalesce(s.summary, '') || ' ' || array_to_string(s.locks, ',') from series s
		join library l on l.tenant_id = s.tenant_id and l.id = s.library_id where s.tenant_id = app.tenant() and s.path <> 'Other'`)
	path := map[string]string{}
	for _, row := range values[string](r.rig, "select id || ' ' || path from series where tenant_id = app.tenant()") {
		path[row[:36]] = row[37:]
	}
	for _, row := range append(r.said(), r.members()...) {
		if at := path[row[len(row)-36:]]; at != "" {
			out = append(out, row[:len(row)-36]+at)
		}
	}
	out = append(out, values[string](r.rig, `select 'wanted ' || s.path from wanted w join series s on s.tenant_id = w.tenant_id and s.id = w.series_id where w.tenant_id = app.tenant()
		union all select 'tracked ' || s.path from series_tracking x join series s on s.tenant_id = x.tenant_id and s.id = x.series_id where x.tenant_id = app.tenant()`)...)
	return out
}

// inherited returns the result of heirs if a series has everything of the series S.
func inherited(series, path string) []string {
	out := []string{series}
	for what := range strings.FieldsSeq("rating id link rated title cover shown genre tag sharing") {
		out = append(out, what+" Older "+path)
	}
	return append(out, "Older "+path, "wanted "+path, "tracked "+path)
}

// A series whose books move to another one in parts, with time between, leaves it what people have chosen and written.
func TestSeriesGoesInParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to    string
		learn func(r *two, from, to string)
	}{
		"within its library":        {"a/New", func(r *two, _, _ string) { r.scans(r.a) }},
		"to another library":        {"b/New", func(r *two, _, _ string) { r.scans(r.a, r.b) }},
		"to another, found first":   {"b/New", func(r *two, _, _ string) { r.scans(r.b, r.a) }},
		"announced over hours":      {"a/New", func(r *two, from, to string) { r.announced(r.a, from); r.announced(r.a, to) }},
		"announced over hours to b": {"b/New", func(r *two, from, to string) { r.announced(r.a, from); r.announced(r.b, to) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			was := r.one("select id::text from series where tenant_id = app.tenant() and path = 'S'")
			r.chosen("Older", "a/S", numbered(2))
			r.exec("insert into series_tracking (tenant_id, series_id, tracked) select tenant_id, id, true from series where tenant_id = $1 and path = 'S'", r.tenant)
			for _, n := range []string{"/01.cbz", "/02.cbz", "/03.cbz"} {
				r.rename("a/S"+n, c.to+n)
				r.events = nil
				c.learn(r, "a/S"+n, c.to+n)
				r.exec("update series set created_at = created_at - interval '2 hours'")
				r.exec("update book set created_at = created_at - interval '2 hours', first_read_at = first_read_at - interval '2 hours', placed_at = placed_at - interval '2 hours'")
			}
			same(t, "the heir has", r.heirs(), inherited("series "+c.to+" My S Mine title", "New"))
			told := func(kind, series string) int {
				return slices.IndexFunc(r.events, func(e events.Event) bool {
					data, _ := json.Marshal(e.Data)
					return e.Kind == kind && strings.Contains(string(data), series)
				})
			}
			if gone := told("series_deleted", was); gone < 0 {
				t.Errorf("listeners are told %+v", r.events)
			} else if r.events = r.events[gone:]; told("series_updated", r.one("select id::text from series where tenant_id = app.tenant() and path = 'New'")) < 0 {
				t.Errorf("after the series is gone listeners are told %+v", r.events)
			}
			r.counted()
		})
	}
}

// A series whose books move to several new ones leaves them to the one that most went to, even if another was first.
func TestSeriesLeavesToWhereMostBooksWent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to   string
		last func(r *two)
	}{
		"within its library": {"a/New", func(r *two) { r.rename("a/S/04.cbz", "a/New/04.cbz") }},
		"to another library": {"b/New", func(r *two) { r.rename("a/S/04.cbz", "b/New/04.cbz") }},
		"the last is purged": {"a/New", func(r *two) { r.remove("a/S/04.cbz") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			testkit.WriteFile(t, r.folder, "a/S/04.cbz", r.numbered(4))
			r.scans(r.a)
			moves := func(from, to string) {
				r.rename("a/S/"+from, to+"/"+from)
				r.scans(r.a, r.b)
				r.exec("update series set created_at = created_at - interval '2 hours'")
				r.exec("update book set created_at = created_at - interval '2 hours', first_read_at = first_read_at - interval '2 hours', placed_at = placed_at - interval '2 hours'")
			}
			moves("01.cbz", "a/Part")
			moves("02.cbz", c.to)
			c.last(r)
			moves("03.cbz", c.to)
			r.purged(r.a)
			same(t, "series", r.heirs(), []string{"series a/Part Part Summary 1 ", "series " + c.to + " My S Mine title"})
			r.counted()
		})
	}
}

// Of two series that merge into one at once, one becomes it; what people have chosen and written for the other moves
// there, too.
func TestSeriesGoIntoOne(t *testing.T) {
	t.Parallel()
	const same5, other = "%s/%d.cbz", "%s/T%d.cbz" // same files are matched at once, different ones when they are read
	for name, c := range map[string]struct{ to, names string }{
		"within its library":               {"a/New", same5},
		"within its library, other names":  {"a/New", other},
		"to another library":               {"b/New", same5},
		"to another library, under others": {"b/New", other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			for i := range 5 { // it has more books, and becomes the new one
				testkit.WriteFile(t, r.folder, fmt.Sprintf("a/T/%d.cbz", i), testkit.Comic(t, 9200+i, 1, ""))
			}
			r.scans(r.a)
			r.chosen("Older", "a/S", numbered(2))
			r.exec("insert into series_tracking (tenant_id, series_id, tracked) select tenant_id, id, true from series where tenant_id = $1 and path = 'S'", r.tenant)
			for n := 1; n <= 3; n++ {
				r.rename("a/"+numbered(n), c.to+"/S"+numbered(n)[2:])
			}
			for i := range 5 {
				r.rename(fmt.Sprintf("a/T/%d.cbz", i), fmt.Sprintf(c.names, c.to, i))
			}
			r.scans(r.a, r.b)
			same(t, "the one has", r.heirs(), inherited("series "+c.to+" My S Mine title", "New"))
			r.counted()
		})
	}
}

// A series that has taken the place of a new one is the heir of one that comes after it, however old it is itself.
func TestSeriesComesAfterAnother(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"a/New", "b/New"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			testkit.WriteFile(t, r.folder, "a/T/0.cbz", testkit.Comic(t, 9200, 1, ""))
			r.scans(r.a)
			r.chosen("Older", "a/S", numbered(2))
			r.exec("insert into series_tracking (tenant_id, series_id, tracked) select tenant_id, id, true from series where tenant_id = $1 and path = 'S'", r.tenant)
			r.exec("update series set created_at = created_at - case path when 'S' then interval '3 hours' else interval '2 hours' end")
			r.exec("update book set created_at = created_at - interval '2 hours', first_read_at = first_read_at - interval '2 hours'")
			into := map[string]uuid.UUID{"a": r.a, "b": r.b}[to[:1]]
			goes := func(from, name string) {
				r.rename(from, to+name)
				r.announced(r.a, from)
				r.announced(into, to+name)
			}
			was := r.one("select id::text from series where path = 'T'")
			goes("a/T/0.cbz", "/T0.cbz")
			if now := r.one("select id::text from series where path = 'New'"); now != was {
				t.Errorf("the series New is %s, want %s", now, was)
			}
			for n := 1; n <= 3; n++ {
				goes("a/"+numbered(n), strings.TrimPrefix(numbered(n), "S"))
			}
			same(t, "the one has", r.heirs(), inherited("series "+to+" My S Mine title", "New"))
			r.counted()
		})
	}
}

// A series that goes on under another name has no heir any more from the time when some of its books went elsewhere.
func TestRenamedSeriesHasNoHeir(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	r.rename("a/S/01.cbz", "a/Part/01.cbz")
	r.scans(r.a)
	r.rename("a/S", "a/New")
	r.scans(r.a)
	same(t, "series", r.heirs(), []string{"series a/New My S Mine title", "series a/Part Part Summary 1 "})
	r.remove("a/New/02.cbz", "a/New/03.cbz")
	r.scans(r.a)
	r.purged(r.a)
	same(t, "series", r.heirs(), []string{"series a/Part Part Summary 1 "})
}

// What was in a series before is not the heir of one whose last book comes to it.
func TestSeriesEndsInAnother(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	r.rename("a/Other/0.cbz", "a/T/0.cbz")
	r.scans(r.a)
	r.exec("update series set created_at = created_at + interval '1 microsecond' where path = 'T'")
	r.chosen("Older", "a/S", numbered(2))
	for _, n := range []string{"/01.cbz", "/02.cbz", "/03.cbz"} {
		r.rename("a/S"+n, "a/T"+n)
		r.scans(r.a)
	}
	same(t, "series", r.heirs(), []string{"series a/T T  "})
}

// Lists and covers that people have locked stay as they are: they replace those of the heir, or nothing comes to them.
func TestHeirOfLockedLists(t *testing.T) {
	t.Parallel()
	const lock = "update series set locks = locks || '{genres,tags,alternateTitles,cover}', cover_source = null where path = '%s'"
	for locked, want := range map[string]string{
		"S":   "Both,Genre 1,Genre 2,Genre 3,Older|Older,Tag 1,Tag 2,Tag 3|A,B,Older|default",
		"New": "Both,Genre 1,Newer|Newer,Tag 1|A,Newer|default",
	} {
		t.Run(locked, func(t *testing.T) {
			t.Parallel()
			r := newTwo(t)
			r.chosen("Older", "a/S", numbered(2))
			r.rename("a/S/01.cbz", "a/New/01.cbz")
			r.scans(r.a)
			r.chosen("Newer", "a/New", "New/01.cbz")
			r.exec(`insert into alternate_title (tenant_id, id, series_id, label, title) select s.tenant_id, gen_random_uuid(), s.id, 'English', x.title
				from series s join (values ('S', 'A'), ('S', 'B'), ('New', 'A')) x(path, title) on x.path = s.path`)
			r.exec(fmt.Sprintf(lock, locked))
			for _, n := range []string{"/02.cbz", "/03.cbz"} {
				r.rename("a/S"+n, "a/New"+n)
			}
			r.scans(r.a)
			if got := r.one(`select concat_ws('|', (select string_agg(g.name, ',' order by g.name) from series_genre x join genre g on g.id = x.genre_id where x.series_id = s.id),
				(select string_agg(g.name, ',' order by g.name) from series_tag x join tag g on g.id = x.tag_id where x.series_id = s.id),
				(select string_agg(x.title, ',' order by x.title) from alternate_title x where x.series_id = s.id), coalesce(s.cover_source, 'default'))
				from series s where s.tenant_id = app.tenant() and s.path <> 'Other'`); got != want {
				t.Errorf("the heir has %s, want %s", got, want)
			}
		})
	}
}

// What people have written about a series survives the renaming of its folder, including what they wrote about the new
// one, locked or not.
func TestRenamedSeriesKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	is := func(what, want string) {
		t.Helper()
		if got := r.one("select concat_ws(' | ', path, title, title_sort, custom_title_sort, summary, publisher) from series where tenant_id = app.tenant() and path <> 'Other'"); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	r.rename("a/S", "b/New")
	r.scans(r.b)
	r.exec("update series set publisher = 'Written', summary = 'Newer', custom_title_sort = 'zz', title_sort = 'zz' where path = 'New'")
	r.scans(r.a)
	is("the newer one was edited", "New | My S | zz | zz | Mine | Written")
	r.exec("update series set locks = '{}' where path = 'New'")
	r.rename("b/New", "b/Newer")
	r.scans(r.b)
	is("the older one was edited", "Newer | Newer | zz | zz | Mine | Written")
}

// A lock set on a field of the series that is about to be deleted is kept.
func TestEditAtTheMomentOfARename(t *testing.T) {
	t.Parallel()
	r := newTwo(t)
	r.exec("delete from book where series_id in (select id from series where path = 'S')")
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select tenant_id, gen_random_uuid(), library_id, 'New', 'New', 'New', 'New', 'new' from series where path = 'S'`)
	editor, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = editor.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := editor.Exec(t.Context(), "update series set locks = '{summary}', summary = 'Written' where path = 'New'"); err != nil {
		t.Fatal(err)
	}
	renamed := make(chan error, 1)
	go func() {
		renamed <- r.db.App.Tx(r.ctx(), func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "select app.replace_series(null, o.id, n.id, '-infinity') from series o, series n where o.tenant_id = app.tenant() and n.tenant_id = app.tenant() and o.path = 'S' and n.path = 'New'")
			return err
		})
	}()
	r.db.AwaitLock(t)
	if err := editor.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-renamed; err != nil {
		t.Fatal(err)
	}
	same(t, "series", values[string](r.rig, "select path || ' ' || summary from series where tenant_id = app.tenant() and path <> 'Other'"), []string{"S Mine", "New Written"})
}

// A purge moves data of empty series to their heirs while a scan writes to these: there is no deadlock.
func TestPurgeWhileHeirsAreWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := uuid.New()
	r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'b', '/books/b', 'books', 'b/', 'series_volume', 'metadata_first', 'smart')`, r.tenant, b)
	r.exec(`with h as (insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		  select $1, gen_random_uuid(), $3, n, n, n, n, n from unnest('{1,2}'::text[]) n returning id, path)
		insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, summary, heir)
		select $1, gen_random_uuid(), $2, path, path, path, path, path, 'mine', id from h`, r.tenant, r.library, b)
	batch, err := r.db.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = batch.Rollback(context.WithoutCancel(t.Context())) }()
	writes := func(sql string) {
		t.Helper()
		if _, err := batch.Exec(t.Context(), sql, b); err != nil {
			t.Error(err)
		}
	}
	writes("select from library_count where library_id = $1 for update")
	writes("update series set publisher = 'new' where library_id = $1 and path = '2'")
	r.exec("insert into task (tenant_id, id, type, priority, library_id, params, max_attempts) values ($1, gen_random_uuid(), 'purge_deleted', 1, $2, '{}', 1)", r.tenant, r.library)
	ctx, cancel := context.WithCancel(t.Context())
	wait := r.work(ctx)
	r.db.AwaitLock(t)
	writes("update series set publisher = 'new' where library_id = $1 and path = '1'")
	if err := batch.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, time.Minute, func() bool {
		return values[bool](r, "select not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")[0]
	})
	cancel()
	wait()
	same(t, "series", values[string](r, "select concat_ws(' ', path, publisher, summary) from series where tenant_id = app.tenant()"), []string{"1 new mine", "2 new mine"})
}
