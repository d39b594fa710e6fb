package scanner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// Tagging programs write a ComicInfo.xml and rename the file at once: the pages identify the book.
func TestRenamedAndTaggedFilesStayTheSameBooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 3 {
		info := ""
		if i > 0 {
			info = "<Genre>Horor, Drama</Genre><Tags>odl</Tags>"
		}
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/%d.cbz", i), testkit.Comic(t, i, 2+i, info))
	}
	r.scanned("normal")
	r.exec("update book_metadata m set locks = '{genresLock}' from book b where b.id = m.book_id and b.key = 'A/2.cbz'")
	for i := range 3 {
		r.read("ann", fmt.Sprintf("A/%d.cbz", i), 1+i)
	}
	r.exec("update series set summary = 'Mine', locks = '{summary}' where tenant_id = $1", r.tenant)
	before := r.shelf()
	// An unchanged copy, and a tagged one: the book with progress follows its exact bytes.
	testkit.WriteFile(t, r.folder, "A (2012)/Copy of 0.cbz", testkit.Comic(t, 0, 2, ""))
	for i := range 3 {
		r.remove(fmt.Sprintf("A/%d.cbz", i))
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A (2012)/%03d - Tagged.cbz", i), testkit.Comic(t, i, 2+i, fmt.Sprintf("<Title>Chapter %d</Title><Summary>Told</Summary><Genre>Horror, drama</Genre><Tags>old</Tags>", i)))
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
	// Names from the old files are removed, unless locked.
	if got := strings.Join(terms(r), ", "); got != "A (2012)/000 - Tagged.cbz #old, A (2012)/000 - Tagged.cbz Drama, A (2012)/000 - Tagged.cbz Horror, "+
		"A (2012)/001 - Tagged.cbz #old, A (2012)/001 - Tagged.cbz Drama, A (2012)/001 - Tagged.cbz Horror, "+
		"A (2012)/002 - Tagged.cbz #old, A (2012)/002 - Tagged.cbz Drama, A (2012)/002 - Tagged.cbz Horor" {
		t.Errorf("the books have %s", got)
	}
	if got := values[string](r, "select path || ' ' || summary from series where tenant_id = app.tenant()"); !slices.Equal(got, []string{"A (2012) Mine"}) {
		t.Errorf("series %q", got)
	}
	if res := r.scanned("normal"); res.Moved+res.Created+res.Updated+res.Deleted != 0 {
		t.Errorf("the next scan: %+v", res)
	}
}

// If a whole library was tagged and renamed, the guard does not know it before the files are read: the next scan does.
func TestGuardLetsTaggedFilesPass(t *testing.T) {
	t.Parallel()
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
	res := r.scan("normal")
	if res.Status != "completed" { // the guard ran before the content was known
		if res.Status != "failed" || res.Held != 12 {
			t.Errorf("the first scan: %+v", res)
		}
		r.until("not exists (select from task where status in ('pending', 'running'))")
		res = r.scanned("normal")
	}
	if res.Moved != 12 {
		t.Errorf("the scan that knows the content: %+v", res)
	}
	if again := values[string](r, "select id::text from book where tenant_id = app.tenant() order by id"); !slices.Equal(ids, again) {
		t.Error("the books are others")
	}
}

// shelves is a library whose series come from the metadata, one of them with a description.
type shelves struct {
	*rig
	series string // its id
}

func newShelves(t *testing.T, name string, books int) shelves {
	r := newRig(t)
	r.choose("flat", "", "filename", "", "file_order")
	values[int](r, "insert into setting (tenant_id, key, value) values (app.tenant(), 'scanner.batch_size', '10') returning 1")
	s := shelves{r, ""}
	for i := range books {
		s.tag(i, name)
	}
	s.scanned("normal")
	r.exec("update series set title = 'Mine', summary = 'Mine', locks = '{title,summary}', created_at = now() - interval '2 hours' where tenant_id = $1", r.tenant)
	s.series = values[string](r, "select id::text from series where tenant_id = app.tenant()")[0]
	return s
}

// tag writes a book of a series; the names differ in length, so that the scan notices the change.
func (s shelves) tag(n int, series string) {
	s.t.Helper()
	s.wrote(fmt.Sprintf("Old %02d.cbz", n), testkit.Comic(s.t, n, 1, "<Series>"+series+"</Series>"), 100*n+int(series[0])) // names may be equally long
}

// are returns the series, with "mine" for the one with a description.
func (s shelves) are() []string {
	s.t.Helper()
	return values[string](s.rig, `select concat_ws(' ', case when id = $1 then 'mine' end, path, title, book_count, summary) from series where tenant_id = app.tenant() order by path`, s.series)
}

func (s shelves) must(want ...string) {
	s.t.Helper()
	if got := s.are(); !slices.Equal(got, want) {
		s.t.Errorf("series %q, want %q", got, want)
	}
}

// A series whose name is corrected in the metadata of all its books stays the same series, in any number of batches.
func TestSeriesRenamedInMetadata(t *testing.T) {
	t.Parallel()
	for _, books := range []int{4, 25} {
		s := newShelves(t, "Old", books)
		for i := range books {
			s.tag(i, "Corrected")
		}
		s.tag(90, "Corrected") // and a new one
		if res := s.scanned("normal"); res.Series != 0 {
			t.Errorf("%d books: %+v", books, res)
		}
		s.must(fmt.Sprintf("mine /corrected Mine %d Mine", books+1))
		// Books that leave a series that keeps others form a new one.
		for i := range 3 {
			s.tag(i, "Other than that")
		}
		s.scanned("normal")
		s.must(fmt.Sprintf("mine /corrected Mine %d Mine", books-2), "/other than that Other than that 3")
	}
}

// A book that was never read does not count for the series in which its name has put it.
func TestNewcomerTakesNoSeriesAlong(t *testing.T) {
	t.Parallel()
	s := newShelves(t, "Old", 3)
	for i := range 3 {
		s.remove(fmt.Sprintf("Old %02d.cbz", i))
	}
	s.tag(50, "Year One")
	s.scanned("normal")
	s.must("mine /old Mine 0 Mine", "/year one Year One 1")
}

// One that goes to a larger new one, or to several, is none of them; the one that most of its books are in has what is
// of it.
func TestSeriesThatIsMergedOrSplit(t *testing.T) {
	t.Parallel()
	s := newShelves(t, "Old", 1)
	for i := range 12 {
		s.tag(i, "Saga")
	}
	s.scanned("normal")
	s.must("/saga Mine 12 Mine")

	s = newShelves(t, "Old", 25)
	for i := range 25 {
		s.tag(i, []string{"Small", "Big one"}[min(i/4, 1)])
	}
	s.scanned("normal")
	s.must("/big one Mine 21 Mine", "/small Small 4")
}

// Of two series that become one, at once or in parts, neither loses what is of it; one that keeps books has no heir,
// nor has one that comes to what was there before.
func TestTwoSeriesBecomeOneInMetadata(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mine, others int
		retag        func(s shelves)
		want         string
	}{
		"as many of each":  {4, 4, nil, "/batman Mine 8 Mine"},
		"the smaller":      {2, 7, nil, "/batman Mine 9 Mine"},
		"batch upon batch": {4, 20, nil, "/batman Mine 24 Mine"}, // the larger one has taken the place of the new one before
		"in parts": {3, 3, func(s shelves) {
			s.tag(0, "Batman")
			s.scanned("normal")
			s.must("/bat-man Bat-man 3", "/batman Batman 1", "mine /batmn Mine 2 Mine")
			s.exec("update series set created_at = created_at - interval '3 hours'")
			s.exec("update book set left_at = left_at - interval '3 hours'")
		}, "/batman Mine 6 Mine"},
		"to what was there": {3, 3, func(s shelves) {
			s.tag(90, "Batman")
			s.scanned("normal")
			s.exec("update series set created_at = now() - interval '1 day' where path = '/batman'")
		}, "/batman Batman 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelves(t, "Batmn", c.mine)
			for i := range c.others {
				testkit.WriteFile(t, s.folder, fmt.Sprintf("A %02d.cbz", i), testkit.Comic(t, 50+i, 1, "<Series>Bat-man</Series>"))
			}
			s.scanned("normal")
			s.exec("update series set created_at = created_at - interval '3 hours' where path = '/bat-man'")
			if c.retag != nil {
				c.retag(s)
			}
			for i := range c.mine {
				s.tag(i, "Batman")
			}
			for i := range c.others {
				testkit.WriteFile(t, s.folder, fmt.Sprintf("A %02d.cbz", i), testkit.Comic(t, 50+i, 1, "<Series>Batman</Series>"))
			}
			s.scanned("normal")
			got := s.are()
			for i := range got { // either of the two may be the one that goes on, as its books are read first
				got[i] = strings.TrimPrefix(got[i], "mine ")
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("series %q, want %q", got, c.want)
			}
		})
	}
}

// A series whose books go one by one, the first with its file and the others because their metadata names another,
// leaves what is of it to the one that most of them are in.
func TestSeriesGoesWithAFileAndInMetadata(t *testing.T) {
	t.Parallel()
	s := newShelves(t, "Old", 3)
	s.remove("Old 00.cbz")
	testkit.WriteFile(t, s.folder, "A 00.cbz", testkit.Comic(t, 0, 1, "<Series>Part</Series>"))
	for n, want := range []string{"mine /old Mine 2 Mine", "/new New 1", "/new Mine 2 Mine"} {
		if n > 0 {
			s.tag(n, "New")
		}
		s.scanned("normal")
		if !slices.Contains(s.are(), want) {
			t.Errorf("after scan %d there are %q, want %q", n, s.are(), want)
		}
		s.exec("update series set created_at = created_at - interval '3 hours'")
		s.exec("update book set left_at = left_at - interval '3 hours'")
	}
}

// Files that went to a series that was there before do not keep the new one from being the heir.
func TestSeriesGoesMostlyToAnOldOne(t *testing.T) {
	t.Parallel()
	s := newShelves(t, "Old", 5)
	testkit.WriteFile(t, s.folder, "There.cbz", testkit.Comic(t, 50, 1, "<Series>There</Series>"))
	for n, change := range []func(){func() {}, func() {
		for i := range 3 {
			s.remove(fmt.Sprintf("Old %02d.cbz", i))
			testkit.WriteFile(t, s.folder, fmt.Sprintf("A %02d.cbz", i), testkit.Comic(t, i, 1, "<Series>There</Series>"))
		}
	}, func() { s.tag(3, "New") }, func() { s.tag(4, "New") }} {
		change()
		s.scanned("normal")
		if want := "/new Mine 2 Mine"; n == 3 && !slices.Contains(s.are(), want) {
			t.Errorf("there are %q, want %q", s.are(), want)
		}
		s.exec("update series set created_at = created_at - interval '3 hours'")
		s.exec("update book set left_at = left_at - interval '3 hours'")
	}
}

// A series that keeps a book, if only one whose file is gone for now, has no heir.
func TestSeriesWithADeletedBookHasNoHeir(t *testing.T) {
	t.Parallel()
	s := newShelves(t, "Batman", 3)
	s.remove("Old 02.cbz")
	for i := range 2 {
		s.tag(i, "Superman")
	}
	s.scanned("normal")
	s.must("mine /batman Mine 0 Mine", "/superman Superman 2")
	if heirs := values[string](s.rig, "select heir::text from series where tenant_id = app.tenant() and heir is not null"); len(heirs) > 0 {
		t.Errorf("the heir is %v", heirs)
	}
}

// A copy with tags that has long been there beside the original is a book of its own: when it is renamed while the
// original goes, it takes its place itself.
func TestTaggedCopyStaysItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "A/raw.cbz", testkit.Comic(t, 1, 2, ""))
	testkit.WriteFile(t, r.folder, "A/tagged.cbz", testkit.Comic(t, 1, 2, "<Title>Tagged</Title>"))
	r.scanned("normal")
	r.read("ann", "A/raw.cbz", 1)
	tagged := values[string](r, "select id::text from book where key = 'A/tagged.cbz'")
	r.remove("A/raw.cbz")
	r.rename("A/tagged.cbz", "A/001.cbz")
	if res := r.scanned("normal"); res.Moved != 1 || res.Deleted != 1 {
		t.Errorf("scan: %+v", res)
	}
	if got := values[string](r, "select id::text from book where tenant_id = app.tenant() and deleted_at is null"); !slices.Equal(got, tagged) {
		t.Errorf("books %q, want %q", got, tagged)
	}
}

// A book with progress is not purged while an unreadable file of its library may be its tagged version.
func TestPurgeWaitsForWhatIsUnread(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec("update library set purge_deleted_on_scan = true where id = $1", r.library)
	for i := range 3 {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("A/%d.cbz", i), testkit.Comic(t, i, 2, ""))
	}
	r.scanned("normal")
	r.read("ann", "A/1.cbz", 1)
	ids := values[string](r, "select id::text from book where tenant_id = app.tenant() and key <> 'A/2.cbz' order by id")
	r.remove("A/1.cbz")
	r.remove("A/2.cbz") // nobody has read it
	testkit.WriteFile(t, r.folder, "A/001.cbz", testkit.Comic(t, 1, 2, "<Title>Tagged</Title>"))
	r.failing("A/001.cbz")
	r.exec("alter table task alter column max_attempts set default 1") // no retries
	r.scan("normal")
	r.until("not exists (select from task where status in ('pending', 'running'))")
	r.s3.Counter.Meddle(nil)
	r.scanned("normal")
	r.until("not exists (select from task where status in ('pending', 'running'))")
	if got := values[string](r, "select id::text from book where tenant_id = app.tenant() and deleted_at is null order by id"); !slices.Equal(got, ids) {
		t.Errorf("books %q, want %q", got, ids)
	}
	if n := values[int](r, "select count(*) from progress where tenant_id = app.tenant()")[0]; n != 1 {
		t.Errorf("%d readers", n)
	}
}
