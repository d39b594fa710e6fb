package scanner_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

func TestScanFindsAndAnalyses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "Alpha/Alpha 1.cbz", testkit.Comic(t, 1, 3, "<Title>First</Title><Number>7</Number><LanguageISO>ja</LanguageISO><Genre>Drama, Comedy</Genre>"))
	testkit.WriteFile(t, r.folder, "Alpha/Alpha 2.cbz", testkit.Comic(t, 2, 4, ""))
	testkit.WriteFile(t, r.folder, "Beta/Vol 1/b.cbz", testkit.Comic(t, 3, 2, ""))
	testkit.WriteFile(t, r.folder, "single.cbz", testkit.Comic(t, 4, 1, ""))
	testkit.WriteFile(t, r.folder, "Alpha/notes.txt", []byte("no book"))
	testkit.WriteFile(t, r.folder, "Alpha/.hidden.cbz", testkit.Comic(t, 5, 1, ""))
	testkit.WriteFile(t, r.folder, "Broken/empty.cbz", nil)
	testkit.WriteFile(t, r.folder, "Broken/text.cbz", []byte("not an archive"))

	res := r.scan("normal")
	want := result{Status: "completed", Total: 6, Processed: 6, Series: 4, Created: 6, Errors: 2, Texts: res.Texts}
	if !slices.Equal(res.Texts, want.Texts) || res.Status != want.Status || res.Total != 6 || res.Processed != 6 || res.Series != 4 || res.Created != 6 || res.Errors != 2 {
		t.Fatalf("scan: %+v", res)
	}
	if of := values[string](r, "select progress_current || '/' || progress_total from task where tenant_id = app.tenant() and type = 'scan_library'"); of[0] != "6/6" {
		t.Errorf("the task is at %s", of[0])
	}
	got := values[string](r, `select b.title || '|' || b.page_count || '|' || coalesce(b.number::text, '-') || '|' || s.title
		from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id where b.tenant_id = app.tenant() and b.analyzed order by b.key`)
	wantRows := []string{"First|3|7|Alpha", "Alpha 2|4|2|Alpha", "b|2|1|Vol 1", "single|1|1|single"}
	if !slices.Equal(got, wantRows) {
		t.Errorf("books %q, want %q", got, wantRows)
	}
	for _, text := range values[string](r, "select error_message from book where tenant_id = app.tenant() and not analyzed order by key") {
		if text == "" {
			t.Error("an error without a text")
		}
	}
	if n := values[int64](r, "select books from library_count where tenant_id = app.tenant()"); n[0] != 6 {
		t.Errorf("counter %d", n[0])
	}
	if g := values[string](r, "select name from genre where tenant_id = app.tenant() order by 1"); !slices.Equal(g, []string{"Comedy", "Drama"}) {
		t.Errorf("genres %q", g)
	}
}

func TestRescanUnchangedWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 30 {
		testkit.WriteFile(t, r.folder, "S/"+string(rune('a'+i%26))+string(rune('0'+i/26))+".cbz", testkit.Comic(t, i, 1, ""))
	}
	r.scan("normal")
	stamps := "select xmin::text || id from book where tenant_id = app.tenant() union all select xmin::text || id from series where tenant_id = app.tenant() order by 1"
	before := values[string](r, stamps)
	r.s3.Counter.Reset()
	res := r.scan("normal")
	if res.Created+res.Updated+res.Deleted+res.Series != 0 || res.Processed != 30 {
		t.Fatalf("rescan: %+v", res)
	}
	if after := values[string](r, stamps); !slices.Equal(before, after) {
		t.Error("rows were written")
	}
	if gets := testkit.Objects(r.s3.Counter.Reset(), "GET"); len(gets) != 0 {
		t.Errorf("objects were read: %v", gets)
	}
}

func TestVanishedComesBackWithProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, r.folder, "S/b.cbz", testkit.Comic(t, 2, 2, ""))
	r.scan("normal")
	ids := values[string](r, "select id::text from book where tenant_id = app.tenant() order by key")
	path := filepath.Join(r.folder, "S", "a.cbz")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if res := r.scan("normal"); res.Deleted != 1 || res.Status != "completed" {
		t.Fatalf("after removal: %+v", res)
	}
	if n := values[int64](r, "select book_count from series where tenant_id = app.tenant()"); n[0] != 1 {
		t.Errorf("the series counts %d books", n[0])
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	r.events = nil
	if res := r.scan("normal"); res.Restored != 1 || res.Created != 0 {
		t.Fatalf("after return: %+v", res)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.events, func(e events.Event) bool {
		data, err := json.Marshal(e.Data)
		return err == nil && e.Kind == "book_updated" && strings.Contains(string(data), ids[0]) && strings.Contains(string(data), `"deleted"`)
	}) {
		t.Errorf("nobody was told that the book is there again: %+v", r.events)
	}
	if again := values[string](r, "select id::text from book where tenant_id = app.tenant() and deleted_at is null order by key"); !slices.Equal(ids, again) {
		t.Errorf("ids changed: %v %v", ids, again)
	}
}

func TestEmptyListingDeletesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 2, ""))
	r.scan("normal")
	for _, make := range []func() error{
		func() error { return os.RemoveAll(filepath.Join(r.folder, "S")) },
		func() error { return os.RemoveAll(r.folder) },
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		res := r.scan("normal")
		if res.Status != "failed" || res.Deleted != 0 || res.Failure == nil {
			t.Fatalf("an empty listing: %+v", res)
		}
		if n := values[int64](r, "select count(*) from book where tenant_id = app.tenant() and deleted_at is null"); n[0] != 1 {
			t.Fatalf("%d books are left", n[0])
		}
	}
}

func TestPurgeOnScan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, r.folder, "T/b.cbz", testkit.Comic(t, 2, 2, ""))
	r.scan("normal")
	if _, err := r.db.Owner.Pool().Exec(t.Context(), "update library set purge_deleted_on_scan = true"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.folder, "S", "a.cbz")); err != nil {
		t.Fatal(err)
	}
	r.rename("T/b.cbz", "U/b.cbz") // not gone, but moved
	id := values[string](r, "select id::text from book where tenant_id = app.tenant() and key = 'T/b.cbz'")
	r.start("normal")
	r.until("exists (select from task where tenant_id = app.tenant() and type = 'purge_deleted' and status = 'completed')")
	if res := values[string](r, "select t.status || s.books_deleted || s.books_moved from scan s join task t on t.id = s.id where s.tenant_id = app.tenant() order by t.created_at"); res[1] != "completed11" {
		t.Fatalf("%q", res)
	}
	if again := values[string](r, "select id::text from book where tenant_id = app.tenant() and key = 'U/b.cbz'"); !slices.Equal(id, again) {
		t.Error("the moved book was purged")
	}
	if got := values[string](r, "select result::text from task where tenant_id = app.tenant() and type = 'purge_deleted'"); !slices.Equal(got, []string{`{"booksPurged": 1, "seriesRemoved": 1}`}) {
		t.Errorf("result %q", got)
	}
	if got := values[string](r, "select path from series where tenant_id = app.tenant()"); !slices.Equal(got, []string{"U"}) {
		t.Errorf("series %q", got)
	}
	if n := values[int64](r, "select count(*) from book where tenant_id = app.tenant()"); n[0] != 1 {
		t.Errorf("%d books", n[0])
	}
	if got := values[int64](r, "select books * 100 + series from library_count where tenant_id = app.tenant()"); got[0] != 101 {
		t.Errorf("counters %v", got)
	}
}

func TestLockedFieldsAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 1, 2, "<Title>File</Title><Number>4</Number><Writer>W</Writer><Summary>old</Summary>"))
	r.scan("normal")
	for _, sql := range []string{
		"update book set title = 'Mine', title_sort = 'Mine', number = 9",
		`update book_metadata set locks = '{titleLock,numberLock,authorsJsonLock}', metadata = metadata || '{"title": "Mine", "authors": [{"name": "Me", "role": "writer"}]}'`,
	} {
		if _, err := r.db.Owner.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	testkit.WriteFile(t, r.folder, "S/a.cbz", testkit.Comic(t, 2, 3, "<Title>New</Title><Number>5</Number><Writer>X</Writer><Summary>new</Summary>"))
	r.scan("deep")
	got := values[string](r, `select b.title || '|' || b.title_sort || '|' || b.number || '|' || b.page_count || '|' || (m.metadata ->> 'title') || '|' || (m.metadata -> 'authors' -> 0 ->> 'name') || '|' || (m.metadata ->> 'summary')
		from book b join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id where b.tenant_id = app.tenant()`)
	if want := []string{"Mine|Mine|9|3|Mine|Me|new"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Values in files must never fail the batch they are stored with.
func TestExtremeValuesAreContained(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("長", 70)
	for name, info := range map[string]string{
		"S/x v99999999999999999999 c99999999999999999999999.cbz": "<Volume>99999999999</Volume><Number>1e308</Number><Year>99999999999</Year><Count>-5</Count>",
		"S/y #1e999.cbz":         "<Number>NaN</Number><Title>" + strings.Repeat("T", 100_000) + "</Title>",
		"S/" + long + ".cbz":     "<Number>-Inf</Number><Genre>" + strings.Repeat("g,", 5000) + "</Genre><LanguageISO>zz-zz-zz-zz</LanguageISO>",
		"S/a\\b\tc'd\"e%_$1.cbz": "<Title>&#x202E;evil</Title><Web>javascript:alert(1)</Web><Volume>2147483648</Volume>",
		"S/v2147483648.cbz":      "<Volume>-2147483649</Volume><Month>13</Month><Day>99</Day><PageCount>99999999999</PageCount>",
	} {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, len(name), 2, info))
	}
	res := r.scan("normal")
	if res.Status != "completed" || res.Created != 5 || res.Processed != 5 || res.Errors != 0 {
		t.Fatalf("%+v", res)
	}
	if n := values[int64](r, "select count(*) from book where tenant_id = app.tenant() and analyzed and page_count = 2"); n[0] != 5 {
		t.Errorf("%d books are analysed", n[0])
	}
	for _, doc := range values[string](r, "select metadata::text from book_metadata where tenant_id = app.tenant()") {
		var m book.Metadata
		if err := json.Unmarshal([]byte(doc), &m); err != nil {
			t.Errorf("the stored document cannot be shown: %v: %.200s", err, doc)
		}
	}
}

// A failed scan that is retried has another end, which is settled like the first.
func TestScanTriedAgainIsSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update library set purge_deleted_on_scan = true")
	for _, name := range []string{"S/1.cbz", "S/2.cbz"} {
		testkit.WriteFile(t, r.folder, name, testkit.Comic(t, len(name), 1, ""))
	}
	r.scan("normal")
	if err := os.Remove(filepath.Join(r.folder, "S/1.cbz")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.folder, r.folder+".away"); err != nil {
		t.Fatal(err)
	}
	id := r.start("normal")
	r.until("(select settled from scan where tenant_id = app.tenant() and id = $1)", id)
	if res := r.result(id); res.Status != task.Failed {
		t.Fatalf("%+v", res)
	}
	if err := os.Rename(r.folder+".away", r.folder); err != nil {
		t.Fatal(err)
	}
	r.exec("update task set status = 'pending', attempts = 0, completed_at = null, last_error = null, started_at = null where id = $1", id)
	r.until("not exists (select from task where tenant_id = app.tenant() and status in ('pending', 'running'))")
	res := r.result(id)
	if res.Status != task.Completed || res.Deleted != 1 {
		t.Errorf("%+v", res)
	}
	if n := values[int](r, "select count(*)::integer from task where tenant_id = app.tenant() and type = 'purge_deleted'"); n[0] != 1 {
		t.Errorf("%d purges", n[0])
	}
}
