package export_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

func rows(t *testing.T, text string) [][]string {
	t.Helper()
	if strings.Count(text, "\r\n") < 1 || !strings.HasPrefix(text, `"`) {
		t.Errorf("no CSV: %.200q", text)
	}
	out, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A user gets all data, with the user's own progress and ratings, in each format.
func TestFormats(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me, other := r.User(t, "one", "reader"), r.User(t, "one", "reader")
	saga := r.addSeries(r.library, "Saga 10", 3)
	r.addSeries(r.library, "Saga 9", 0)
	evil := r.addSeries(r.library, "=cmd|' /C calc'!A0", 1)
	r.exec(`update series set summary = '-1+1; @x "quoted"' || chr(10) || '=2', year = -3, authors = '[{"name":"A","role":"writer"},{"name":"B"}]' where id = $1`, evil)
	for n, name := range []string{"Drama", "+Plus"} {
		id := uuid.New()
		r.exec("insert into genre (tenant_id, id, name) values ($1, $2, $3)", r.One, id, name)
		r.exec("insert into series_genre (tenant_id, series_id, genre_id) select $1, id, $2 from series where $3 = 0 or id = $4", r.One, id, n, evil)
	}
	for _, c := range []*testkit.Client{me, other} {
		r.exec("insert into series_rating (tenant_id, account_id, series_id, id, rating, notes) values ($1, $2, $3, gen_random_uuid(), $4, $5)", r.One, c.ID, saga,
			map[bool]int{true: 90, false: 10}[c == me], map[bool]string{true: "mine", false: "theirs"}[c == me])
	}
	r.exec("insert into wanted (tenant_id, account_id, id, series_id, place) values ($1, $2, gen_random_uuid(), $3, 1)", r.One, other.ID, saga)
	r.exec("insert into wanted (tenant_id, account_id, id, series_id, place) values ($1, $2, gen_random_uuid(), $3, 1)", r.One, me.ID, evil)
	r.exec("insert into progress (tenant_id, account_id, book_id, id, current_page, completed) select $1, $2, id, gen_random_uuid(), 20, true from book where title in ('Saga 10 1', 'Saga 10 3')", r.One, me.ID)
	r.exec("insert into progress (tenant_id, account_id, book_id, id, current_page) select $1, $2, id, gen_random_uuid(), 5 from book where title = 'Saga 10 2'", r.One, me.ID)
	r.exec("insert into progress (tenant_id, account_id, book_id, id, current_page, completed) select $1, $2, id, gen_random_uuid(), 20, true from book", r.One, other.ID)

	got := rows(t, r.made(me, `{"format":"csv","fields":["year","summary","authors","genres","userRating","communityRating","userNotes","wantToRead","readStatus","booksRead","booksInProgress","bookCount","year"]}`))
	want := [][]string{
		{"id", "title", "year", "summary", "authors", "genres", "userRating", "communityRating", "userNotes", "wantToRead", "readStatus", "booksRead", "booksInProgress", "bookCount"},
		{evil.String(), "'=cmd|' /C calc'!A0", "-3", "'-1+1; '@x \"quoted\"\n'=2", "A (writer) | B", "'+Plus | Drama", "", "", "", "true", "unread", "0", "0", "1"},
		{r.series["Saga 9"].String(), "Saga 9", "", "", "", "Drama", "", "", "", "false", "unread", "0", "0", "0"},
		{saga.String(), "Saga 10", "", "", "", "Drama", "90", "50.0", "mine", "false", "in_progress", "2", "1", "3"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("CSV:\n%v, want\n%v", got, want)
	}
	got = rows(t, r.made(me, `{"format":"csv","exportType":"books","bookFields":["number","readStatus","currentPage","progressPercentage"]}`))
	for i := range got {
		got[i] = got[i][1:] // without the id
	}
	want = [][]string{{"title", "seriesTitle", "number", "readStatus", "currentPage", "progressPercentage"}, {"'=cmd|' /C calc'!A0 1", "'=cmd|' /C calc'!A0", "1", "unread", "", ""},
		{"Saga 10 1", "Saga 10", "1", "read", "20", "1"}, {"Saga 10 2", "Saga 10", "2", "in_progress", "5", "0.25"}, {"Saga 10 3", "Saga 10", "", "read", "20", "1"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("CSV of books:\n%v, want\n%v", got, want)
	}
	var document struct {
		Series []map[string]any
		Books  []map[string]any
	}
	text := r.made(me, body("json", "both", `"wantToRead","createdAt"`, ""))
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Series) != 3 || len(document.Books) != 4 {
		t.Fatalf("%v: %s", err, text)
	}
	if s := document.Series[0]; s["title"] != "=cmd|' /C calc'!A0" || s["wantToRead"] != true || s["id"] != evil.String() || len(s) != 4 {
		t.Errorf("JSON: %v", s)
	}
	if at, err := time.Parse(time.RFC3339, document.Books[1]["createdAt"].(string)); err != nil || time.Since(at) > time.Hour {
		t.Errorf("a time: %v, %v", document.Books[1], err)
	}
	if text := r.made(other, `{"format":"json","fields":["userNotes"]}`); strings.Contains(text, "mine") || !strings.Contains(text, `"userNotes":"theirs"`) {
		t.Errorf("another user's: %s", text)
	}
	r.exec("update series set title = '<b>[x](y)*' || chr(10) || '# z' where id = $1", saga)
	text = r.made(me, `{"format":"md","exportType":"both","fields":["userRating","readStatus"]}`)
	for _, s := range []string{"# Series\n", "\n# Books\n", "\n## \\<b\\>\\[x\\](y)\\* \\# z\n\n- **ID:** " + saga.String() + "\n- **My rating:** 90\n- **Read:** in\\_progress\n", "- **Series:** Saga 9\n"} {
		if strings.Contains(text, s) == strings.Contains(s, "Series:** Saga 9") { // which has no books
			t.Errorf("Markdown with %q: %s", s, text)
		}
	}
	// All fields, for given libraries.
	var catalog struct{ Fields, BookFields []struct{ Key string } }
	r.Anonymous(t, "one").Do("GET", at+"/fields", nil).Want(200).JSON(&catalog)
	keys := map[string][]string{}
	for _, f := range catalog.Fields {
		keys["fields"] = append(keys["fields"], f.Key)
	}
	for _, f := range catalog.BookFields {
		keys["bookFields"] = append(keys["bookFields"], f.Key)
	}
	second := uuid.New()
	r.addLibrary(second, "Books")
	r.addSeries(second, "Second", 1)
	all, _ := json.Marshal(map[string]any{"format": "json", "exportType": "both", "libraryIds": []uuid.UUID{second, second}, "fields": keys["fields"], "bookFields": keys["bookFields"]})
	if err := json.Unmarshal([]byte(r.made(me, string(all))), &document); err != nil || len(document.Series) != 1 || len(document.Books) != 1 ||
		len(document.Series[0]) != len(keys["fields"]) || len(document.Books[0]) != len(keys["bookFields"]) ||
		document.Series[0]["path"] != "/Books/Second" || document.Books[0]["path"] != "/Books/Second/1.cbz" {
		t.Errorf("all fields: %v, %v", document, err)
	}
	if text := r.made(me, body("json", "series", "", fmt.Sprintf(`,"libraryIds":[%q]`, r.library))); strings.Contains(text, "Second") {
		t.Errorf("another library's: %s", text)
	}
	r.exec("delete from library where id = $1", second)
}

func TestHarmless(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "a=1": "a=1", "=1": "'=1", " +1": " '+1", "a; =1": "a; '=1", "a\n-1": "a\n'-1", "\t=1": "'\t'=1", "x\r@y": "x\r'@y", `"=1`: `"'=1`,
		"＝1": "'＝1", "a-b": "a-b", "a, -b": "a, -b", "\ufeff=1": "\ufeff'=1", "-": "'-", "\ra": "'\ra"} {
		if got := export.Harmless(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// Sharing tags apply to the file, even for administrators; it can be downloaded while they hide the same.
func TestHiddenSeriesAreNotExported(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hidden, shown := r.addSeries(r.library, "Verborgen", 3), r.addSeries(r.library, "Offen", 2)
	r.exec("update series set created_at = now() - interval '1 day'")
	denied, allowed, free := r.User(t, "one", "admin"), r.User(t, "one", "reader"), r.User(t, "one", "reader")
	for _, c := range []*testkit.Client{denied, allowed, free} {
		r.exec("insert into progress (tenant_id, account_id, book_id, id, current_page, completed) select $1, $2, id, gen_random_uuid(), 20, true from book", r.One, c.ID)
	}
	deny := r.hide(denied.ID, "deny", hidden)
	r.hide(allowed.ID, "allow", shown)
	const all = `"userRating","readStatus","lastReadAt","booksRead","bookCount"`
	for name, c := range map[string]*testkit.Client{"denied": denied, "allowed": allowed} {
		for _, format := range []string{"json", "md"} {
			id := r.ask(c, fmt.Sprintf(`{"format":%q,"exportType":"both","fields":[%s],"bookFields":["seriesId"]}`, format, all))
			if err := r.run(id); err != nil {
				t.Fatal(err)
			}
			text := string(c.Do("GET", at+"/"+id.String()+"/download", nil).Want(200).Body)
			if strings.Contains(text, "Verborgen") || strings.Contains(text, hidden.String()) || strings.Count(text, "Offen") != map[string]int{"json": 5, "md": 5}[format] {
				t.Errorf("%s: %s", name, text)
			}
			if n := r.number("select progress_total from task where id = $1", id); n != 3 && n != 0 {
				t.Errorf("%s: %d rows to do", name, n)
			}
			if e := c.Do("GET", at+"/"+id.String(), nil).Want(200).Map(); e["rowCount"] != 3.0 {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
	if text := r.made(free, body("json", "both", "", "")); strings.Count(text, "Verborgen") != 7 {
		t.Errorf("from whom nothing is hidden: %s", text)
	}
	// If something is hidden after the file was made, the file is not served.
	for name, change := range map[string]func(c *testkit.Client){
		"another series gets the tag": func(*testkit.Client) {
			r.exec("insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", r.One, shown, deny)
		},
		"another tag is denied": func(c *testkit.Client) { r.hide(c.ID, "deny") },
	} {
		id := r.ask(denied, body("csv", "series", "", ""))
		if err := r.run(id); err != nil {
			t.Fatal(err)
		}
		denied.Do("GET", at+"/"+id.String()+"/download", nil).Want(200)
		change(denied)
		if r := denied.Do("GET", at+"/"+id.String()+"/download", nil); r.Status != 409 {
			t.Errorf("%s: status %d", name, r.Status)
		}
	}
	id := r.ask(free, body("csv", "series", "", ""))
	if err := r.run(id); err != nil {
		t.Fatal(err)
	}
	r.hide(free.ID, "deny", hidden) // it was made when nothing was hidden
	free.Do("GET", at+"/"+id.String()+"/download", nil).Want(409)
}

// If the user's view changes while the file is made, it is not kept.
func TestHiddenMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.maker.PartBytes = 1 // one part per row; the store rejects joining such small parts, but is not asked to
	me := r.User(t, "one", "reader")
	hidden := r.addSeries(r.library, "A", 0)
	r.addSeries(r.library, "B", 0)
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if q.Method == http.MethodPost && q.URL.Query().Has("uploadId") { // joining the parts
			r.hide(me.ID, "deny", hidden)
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
			return
		}
		next.ServeHTTP(w, q)
	})
	id := r.ask(me, body("csv", "series", "", ""))
	if err := r.run(id); err == nil {
		t.Error("the file was kept")
	}
	r.s3.Counter.Meddle(nil)
	if e := me.Do("GET", at+"/"+id.String(), nil).Want(200).Map(); e["status"] != "failed" || !strings.Contains(e["error"].(string), "changed while") {
		t.Errorf("%v", e)
	}
}

// A user who was disabled gets no file.
func TestUserMayNot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addSeries(r.library, "A", 1)
	me := r.User(t, "one", "reader")
	id := r.ask(me, body("csv", "books", "", ""))
	r.exec("update account set is_active = false where id = $1", me.ID)
	if err := r.run(id); err == nil || len(r.objects()) != 0 {
		t.Errorf("%v, %v", err, r.objects())
	}
	r.exec("update account set is_active = true where id = $1", me.ID)
	if e := me.Do("GET", at+"/"+id.String(), nil).Want(200).Map(); e["status"] != "failed" || !strings.Contains(e["error"].(string), "disabled") {
		t.Errorf("%v", e)
	}
}

// A file of many batches and parts is the same if the task pauses after each part, or its worker dies; a worker that
// has lost its lease changes nothing.
func TestLargeExport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.maker.PartBytes = 5 << 20
	me := r.User(t, "one", "reader")
	const series = 2*export.Batch + 50
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, summary)
		select $1, gen_random_uuid(), $2, 's' || n, 's', 'Same ' || n / 3, 'Same ' || n / 3, 's', repeat('long ', 4000) || n from generate_series(1, $3::integer) n`, r.One, r.library, series)
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, number, page_count)
		select $1, gen_random_uuid(), $2, s.id, s.path || '/' || n, 100, now(), 'cbz', 'b', case n % 7 when 0 then 'b' else 'b' || n end, 'b', nullif(n % 5, 0), 20
		from series s, generate_series(1, case s.path when 's100' then 650 else 2 end) n where s.tenant_id = $1`, r.One, r.library)
	request := `{"format":"json","exportType":"both","fields":["summary"],"bookFields":["number"]}`
	read := func(id uuid.UUID) string { // in ranges, as it exceeds the response limit
		t.Helper()
		c, whole := *me, ""
		me.Do("GET", at+"/"+id.String()+"/download", nil).Want(413)
		c.Header = me.Header.Clone()
		for _, part := range []string{"bytes=0-5999999", "bytes=6000000-"} {
			c.Header.Set("Range", part)
			whole += string(c.Do("GET", at+"/"+id.String()+"/download", nil).Want(206).Body)
		}
		return whole
	}
	id := r.ask(me, request)
	if err := r.run(id); err != nil {
		t.Fatal(err)
	}
	first := read(id)
	var document struct {
		Series []struct{ ID, Title string }
		Books  []struct{ ID, SeriesTitle string }
	}
	if err := json.Unmarshal([]byte(first), &document); err != nil || len(document.Series) != series || len(document.Books) != 650+2*(series-1) || len(first) < 8<<20 {
		t.Fatalf("%d bytes, %d series, %d books: %v", len(first), len(document.Series), len(document.Books), err)
	}
	seen := map[string]bool{}
	for _, s := range document.Series {
		seen[s.ID] = true
	}
	for _, b := range document.Books {
		seen[b.ID] = true
	}
	if len(seen) != len(document.Series)+len(document.Books) {
		t.Errorf("%d of %d rows are there once", len(seen), len(document.Series)+len(document.Books))
	}
	if !slices.IsSortedFunc(document.Books, func(a, b struct{ ID, SeriesTitle string }) int {
		var x, y int
		_, _ = fmt.Sscanf(a.SeriesTitle, "Same %d", &x)
		_, _ = fmt.Sscanf(b.SeriesTitle, "Same %d", &y)
		return x - y
	}) {
		t.Error("the books are not in the order of their series")
	}
	pause := make(chan struct{})
	close(pause)
	id = r.ask(me, request)
	runs := 0
	for {
		h := r.claim(id)
		_, err := r.maker.Make(task.WithPause(db.In(t.Context(), h.Scope()), pause), h)
		runs++
		if err == nil {
			r.exec("update task set status = 'completed' where id = $1", id)
			break
		}
		if !strings.Contains(err.Error(), "the task is paused") || runs > 5 {
			t.Fatal(err)
		}
		r.exec("update task set status = 'pending' where id = $1", id) // the checkpoint was stored with the part
	}
	if runs < 2 || read(id) != first {
		t.Errorf("paused %d times, the same file: %v", runs-1, read(id) == first)
	}

	// The worker dies after the first part; another continues, and the first one wakes up again.
	id = r.ask(me, request)
	h := r.claim(id)
	dying, die := context.WithCancel(db.In(t.Context(), h.Scope()))
	parts := 0
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if q.Method == http.MethodPut && q.URL.Query().Has("partNumber") {
			if parts++; parts == 2 {
				die()
			}
		}
		next.ServeHTTP(w, q)
	})
	if _, err := r.maker.Make(dying, h); err == nil {
		t.Fatal("it did not die")
	}
	r.s3.Counter.Meddle(nil)
	r.exec("update task set status = 'pending' where id = $1", id)
	if err := r.run(id); err != nil {
		t.Fatal(err)
	}
	if _, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); !db.LeaseLost(err) {
		t.Errorf("the first worker: %v", err)
	}
	if read(id) != first {
		t.Error("another file after a worker died")
	}
	// The worker dies while the parts are joined; another one finds the file.
	id = r.ask(me, request)
	h = r.claim(id)
	dying, die = context.WithCancel(db.In(t.Context(), h.Scope()))
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		next.ServeHTTP(w, q)
		if q.Method == http.MethodPost && q.URL.Query().Has("uploadId") {
			die()
		}
	})
	if _, err := r.maker.Make(dying, h); err == nil {
		t.Fatal("it did not die")
	}
	r.s3.Counter.Meddle(nil)
	r.exec("update task set status = 'pending' where id = $1", id)
	if err := r.run(id); err != nil || read(id) != first {
		t.Errorf("joined already: %v", err)
	}

	// A range, and conditional requests.
	c := *me
	c.Header = me.Header.Clone()
	c.Header.Set("Range", "bytes=6000000-6000009")
	part := c.Do("GET", at+"/"+id.String()+"/download", nil).Want(206)
	if string(part.Body) != first[6000000:6000010] || part.Header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("%q, %v", part.Body, part.Header)
	}
	for _, much := range []string{"bytes=0-1,5-6", "bytes=0-"} { // a multipart range is answered with the whole file
		c.Header.Set("Range", much)
		c.Do("GET", at+"/"+id.String()+"/download", nil).Want(413)
	}
	c.Header.Set("Range", "bytes=900000000-")
	if got := c.Do("GET", at+"/"+id.String()+"/download", nil).Want(416); got.Map()["error"] != "RangeNotSatisfiable" {
		t.Errorf("outside: %s", got.Body)
	}
	c.Header.Set("If-None-Match", part.Header.Get("ETag"))
	c.Do("GET", at+"/"+id.String()+"/download", nil).Want(304)

	// The store loses the upload: the next run starts over.
	id = r.ask(me, request)
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if q.Method == http.MethodPut && q.URL.Query().Get("partNumber") == "2" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		next.ServeHTTP(w, q)
	})
	h = r.claim(id)
	if _, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); err == nil {
		t.Fatal("nothing was said")
	}
	r.s3.Counter.Meddle(nil)
	r.exec("update task set status = 'pending' where id = $1", id)
	if err := r.run(id); err != nil || read(id) != first {
		t.Errorf("begun anew: %v", err)
	}
	// Deleting an export stops the run that makes it.
	id = r.ask(me, request)
	h = r.claim(id)
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		if q.Method == http.MethodPut && q.URL.Query().Get("partNumber") == "1" {
			me.Do("DELETE", at+"/"+id.String(), nil)
		}
		next.ServeHTTP(w, q)
	})
	before := len(r.objects())
	if out, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); err != nil || out != (export.Result{}) || len(r.objects()) != before {
		t.Errorf("%v, %v, %v", out, err, r.objects())
	}
	r.s3.Counter.Meddle(nil)
}

// A run that fails to store a part leaves its upload to the next one, which continues after the parts that were stored.
func TestFailedPartIsSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.maker.PartBytes = 1
	for _, title := range []string{"A", "B", "C"} {
		r.addSeries(r.library, title, 0)
	}
	me := r.User(t, "one", "reader")
	id := r.ask(me, body("json", "series", "", ""))
	uploads, begun := map[string]bool{}, 0
	sent, fails := "", "1"
	r.s3.Counter.Meddle(func(w http.ResponseWriter, q *http.Request, next http.Handler) {
		query := q.URL.Query()
		part := query.Get("partNumber")
		switch {
		case q.Method == http.MethodPut && part != "":
			uploads[query.Get("uploadId")] = true
			sent += " " + part
			if part == fails {
				fails = map[string]string{"1": "3"}[part]
				w.WriteHeader(http.StatusForbidden)
				return
			}
		case q.Method == http.MethodPost && query.Has("uploads"):
			begun++
		case q.Method == http.MethodPost && query.Has("uploadId"): // joining the parts, which are too small
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>`)
			return
		}
		next.ServeHTTP(w, q)
	})
	for range 2 {
		h := r.claim(id)
		if _, err := r.maker.Make(db.In(t.Context(), h.Scope()), h); !errors.Is(err, blob.ErrDenied) {
			t.Fatal(err)
		}
		r.exec("update task set status = 'pending' where id = $1", id)
		sent += ","
	}
	if err := r.run(id); err != nil || sent != " 1, 1 2 3, 3 4" || begun != 1 || len(uploads) != 1 {
		t.Errorf("%v; sent%s in %d of %d uploads", err, sent, len(uploads), begun)
	}
	r.s3.Counter.Meddle(nil)
}

// The object of a run that died before its export was deleted is removed by the next run, though a clean-up may have
// looked before it was stored.
func TestObjectOfADeletedExport(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "reader")
	id, other := r.ask(me, `{"format":"csv"}`), r.ask(me, `{"format":"csv"}`)
	for _, key := range []string{id.String() + "/1", other.String() + "/1"} {
		if err := r.s3.Config.Media().Put(t.Context(), r.s3.Config.MediaBucket, export.Folder(r.One)+key, "text/csv", []byte("1")); err != nil {
			t.Fatal(err)
		}
	}
	r.exec("update task set started_at = now() where id = $1", id) // by a worker that has died
	me.Do("DELETE", at+"/"+id.String(), nil).Want(204)
	if err := r.run(id); err != nil {
		t.Error(err)
	}
	if got := r.objects(); len(got) != 1 || got[0] != other.String()+"/1" {
		t.Errorf("left: %v", got)
	}
}

// A worker that has lost its lease before it stored a part does not write to the next run's object.
func TestObjectOfItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addSeries(r.library, "A", 1)
	me := r.User(t, "one", "reader")
	id := r.ask(me, body("csv", "series", "", ""))
	h := r.claim(id)
	dying, die := context.WithCancel(db.In(t.Context(), h.Scope()))
	r.s3.Counter.Meddle(func(http.ResponseWriter, *http.Request, http.Handler) { die() })
	if _, err := r.maker.Make(dying, h); err == nil {
		t.Fatal("it did not die")
	}
	r.s3.Counter.Meddle(nil)
	if n := r.number("select count(*) from task where id = $1 and place is not null", id); n != 1 {
		t.Fatal("it did not say how far it was")
	}
	r.exec("update task set status = 'pending' where id = $1", id)
	if err := r.run(id); err != nil {
		t.Fatal(err)
	}
	if got := r.object(id); !strings.HasSuffix(got, "/2") {
		t.Errorf("the second run wrote %s", got)
	}
}

// No batch may scan a whole table.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	me := s.User(t, "one", "reader")
	library, series := s.Crowd(t, s.One, me.ID)
	for _, table := range []string{"genre", "tag"} {
		s.DB.Exec(t, "insert into "+table+" (tenant_id, id, name) select id, gen_random_uuid(), '"+table+" ' || n from tenant, generate_series(1, 100) n")
		s.DB.Exec(t, "insert into series_"+table+" select s.tenant_id, s.id, t.id from series s join "+table+" t on t.tenant_id = s.tenant_id and right(t.name, 1) = right(s.title, 1)")
		s.DB.Exec(t, "vacuum analyze "+table+", series_"+table)
	}
	seriesSQL, booksSQL := export.Statements()
	for _, libraries := range [][]uuid.UUID{{}, {library}} {
		for sql, args := range map[string][]any{seriesSQL: {libraries, "Series 5", series}, booksSQL: {libraries, "Series 5", series, 3.0, "b", uuid.New()}} {
			scanned, plan := s.Scans(t, me, sql, args...)
			for _, table := range []string{"book", "series", "progress", "book_metadata", "series_genre", "series_tag"} {
				if slices.Contains(scanned, table) {
					t.Errorf("reads all of %s: %s", table, plan)
				}
			}
		}
	}
}

// By default a file has the fields of the presets; an empty list selects only the anchors.
func TestWhatExportsTellByDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addSeries(r.library, "Saga", 1)
	me := r.User(t, "one", "reader")
	var catalog export.Catalog
	me.Do("GET", at+"/fields", nil).Want(200).JSON(&catalog)
	for body, want := range map[string][2][]string{
		`{"format":"json"}`:                                                  {catalog.Presets.LLMSelect, {}},
		`{"format":"json","exportType":"books"}`:                             {{}, catalog.Presets.LLMSelectBooks},
		`{"format":"json","exportType":"both","bookFields":["number"]}`:      {catalog.Presets.LLMSelect, {"number"}},
		`{"format":"json","exportType":"both","fields":[],"book_fields":[]}`: {{}, {}},
		`{"format":"json","exportType":"series","fields":["year"]}`:          {{"year"}, {}},
	} {
		id := r.ask(me, body)
		var e export.Export
		me.Do("GET", at+"/"+id.String(), nil).Want(200).JSON(&e)
		if !slices.Equal(e.Fields, want[0]) || !slices.Equal(e.BookFields, want[1]) {
			t.Errorf("%s: %v, %v", body, e.Fields, e.BookFields)
		}
		me.Do("DELETE", at+"/"+id.String(), nil).Want(204)
	}
	text := r.made(me, `{"format":"csv"}`)
	if first, _, _ := strings.Cut(text, "\r\n"); first != `"id","title","summary","status","year","authors","genres","tags","bookCount","readStatus","userRating","wantToRead"` {
		t.Errorf("%s", first)
	}
}
