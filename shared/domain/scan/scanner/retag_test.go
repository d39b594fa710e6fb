package scanner_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// Programs that tag comics write a ComicInfo.xml into them and rename them at once: the pages say which is which.
func TestRenamedAndTaggedFilesStayTheSameBooks(t *testing.T) {
	r := newRig(t)
	for i := range 3 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/%d.cbz", i), testkit.Comic(t, i, 2+i, ""))
	}
	r.scanned("normal")
	for i := range 3 {
		r.read("ann", fmt.Sprintf("A/%d.cbz", i), 1+i)
	}
	r.exec("update series set summary = 'Mine', locks = '{summary}' where tenant_id = $1", r.tenant)
	before := r.shelf()
	// One copy as it was, and one with tags: who is read follows to where its bytes are.
	testkit.WriteFile(t, r.folder, "A (2012)/Copy of 0.cbz", testkit.Comic(t, 0, 2, ""))
	for i := range 3 {
		r.remove(fmt.Sprintf("A/%d.cbz", i))
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A (2012)/%03d - Tagged.cbz", i), testkit.Comic(t, i, 2+i, fmt.Sprintf("<Title>Chapter %d</Title><Summary>Told</Summary>", i)))
	}
	if res := r.scanned("normal"); res.Moved != 3 || res.Created != 1 || res.Deleted != 0 {
		t.Errorf("scan: %+v", res)
	}
	after := r.shelf()
	if len(after) != 4 {
		t.Fatalf("%q", after)
	}
	id := func(row string) string { return row[:36] }
	for i, at := range []int{3, 1, 2} { // "Copy of 0.cbz" comes last
		if id(after[at]) != id(before[i]) {
			t.Errorf("%q became %q", before[i], after[at])
		}
	}
	if n := values[int](r, "select count(*) from book b join book_metadata m on m.book_id = b.id where b.tenant_id = app.tenant() and b.key like '%Tagged.cbz' and m.metadata ->> 'summary' = 'Told'")[0]; n != 3 {
		t.Errorf("%d books have what their new files say", n)
	}
	if got := values[string](r, "select path || ' ' || summary from series where tenant_id = app.tenant()"); !slices.Equal(got, []string{"A (2012) Mine"}) {
		t.Errorf("series %q", got)
	}
	if res := r.scanned("normal"); res.Moved+res.Created+res.Updated+res.Deleted != 0 {
		t.Errorf("the next scan: %+v", res)
	}
}

// Where all of a library was tagged and renamed, the guard does not know that before the files are read: the next scan does.
func TestGuardLetsTaggedFilesPass(t *testing.T) {
	r := newRig(t)
	for i := range 12 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/%d.cbz", i), testkit.Comic(t, i, 2, ""))
	}
	r.scanned("normal")
	ids := values[string](r, "select id::text from book where tenant_id = app.tenant() order by id")
	for i := range 12 {
		r.remove(fmt.Sprintf("A/%d.cbz", i))
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/%02d - Tagged.cbz", i), testkit.Comic(t, i, 2, fmt.Sprintf("<Title>Chapter %d</Title>", i)))
	}
	if res := r.scan("normal"); res.Status != "failed" || res.Held != 12 {
		t.Errorf("the first scan: %+v", res)
	}
	r.until("not exists (select from task where status in ('pending', 'running'))")
	if res := r.scanned("normal"); res.Moved != 12 {
		t.Errorf("the second scan: %+v", res)
	}
	if again := values[string](r, "select id::text from book where tenant_id = app.tenant() order by id"); !slices.Equal(ids, again) {
		t.Error("the books are others")
	}
}

// A series whose name is corrected in the metadata of all its books is the same series.
func TestSeriesRenamedInMetadata(t *testing.T) {
	r := newRig(t)
	r.choose("flat", `{"requireMetadata": true}`, "filename", "", "file_order")
	tag := func(series string, n int) {
		t.Helper()
		for i := range n {
			testkit.WriteFile(t, r.folder, fmt.Sprintf("%d.cbz", i), testkit.Comic(t, i, 2, "<Series>"+series+"</Series>"))
		}
	}
	state := func() []string {
		t.Helper()
		return values[string](r, "select concat_ws(' ', id, title, book_count, summary) from series where tenant_id = app.tenant() order by title")
	}
	tag("Old Name", 4)
	r.scanned("normal")
	r.exec("update series set summary = 'Mine', locks = '{summary}', created_at = now() - interval '2 hours' where tenant_id = $1", r.tenant)
	id := values[string](r, "select id::text from series where tenant_id = app.tenant()")[0]
	tag("The New Name", 4)
	if res := r.scanned("normal"); res.Series != 0 {
		t.Errorf("scan: %+v", res)
	}
	if got := state(); !slices.Equal(got, []string{id + " The New Name 4 Mine"}) {
		t.Errorf("series %q", got)
	}
	// Of one that keeps a book those that leave it make another.
	tag("Third Name", 3)
	r.scanned("normal")
	if got := state(); len(got) != 2 || got[0] != id+" The New Name 1 Mine" {
		t.Errorf("series %q", got)
	}
}
