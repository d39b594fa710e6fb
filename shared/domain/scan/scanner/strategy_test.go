package scanner_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// choose sets the strategies of the rig's library.
func (r *rig) choose(series, seriesConfig, book, bookConfig, number string) {
	r.t.Helper()
	_, err := r.db.Owner.Pool().Exec(context.Background(), `update library set series_strategy = $2, series_config = nullif($3, '')::jsonb,
		book_strategy = $4, book_config = nullif($5, '')::jsonb, number_strategy = $6 where id = $1`, r.library, series, seriesConfig, book, bookConfig, number)
	if err != nil {
		r.t.Fatal(err)
	}
}

// books returns the library's books as "series: title number volume chapter".
func (r *rig) books() []string {
	r.t.Helper()
	return values[string](r, `select s.title || ': ' || b.title || ' ' || coalesce(b.number::text, '-') || ' ' || coalesce(b.volume::text, '-') || ' ' || coalesce(b.chapter::text, '-')
		from book b join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		where b.tenant_id = app.tenant() and b.deleted_at is null order by s.title, b.key collate natural_order`)
}

func (r *rig) mustBe(want ...string) {
	r.t.Helper()
	if got := r.books(); !slices.Equal(got, want) {
		r.t.Errorf("books\n  got  %s\n  want %s", strings.Join(got, "\n       "), strings.Join(want, "\n       "))
	}
}

func (r *rig) scanned(mode string) result {
	r.t.Helper()
	res := r.scan(mode)
	if res.Status != "completed" || res.Errors != 0 {
		r.t.Fatalf("scan: %+v", res)
	}
	return res
}

func TestSeriesVolumeChapter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("series_volume_chapter", "", "series_name", "", "file_order")
	testkit.WriteFile(t, r.folder, "One Piece/Volume 01/ch001.cbz", testkit.Comic(t, 1, 1, "<Title>No</Title>"))
	testkit.WriteFile(t, r.folder, "One Piece/Volume 01/ch002.cbz", testkit.Comic(t, 2, 1, ""))
	testkit.WriteFile(t, r.folder, "One Piece/Volume 12/ch150.cbz", testkit.Comic(t, 3, 1, ""))
	testkit.WriteFile(t, r.folder, "One Piece/x.cbz", testkit.Comic(t, 4, 1, ""))
	r.scanned("normal")
	r.mustBe("One Piece: One Piece v.01 c.001 1 1 1", "One Piece: One Piece v.01 c.002 2 1 2", "One Piece: One Piece v.12 c.150 3 12 150", "One Piece: One Piece v.04 4 - -")
	r.scanned("deep")
	r.mustBe("One Piece: One Piece v.01 c.001 1 1 1", "One Piece: One Piece v.01 c.002 2 1 2", "One Piece: One Piece v.12 c.150 3 12 150", "One Piece: One Piece v.04 4 - -")
}

func TestPublisherHierarchyFillsThePublisher(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("publisher_hierarchy", `{"skipDepth":2,"storeSkippedAs":"shelf"}`, "filename", "", "filename")
	testkit.WriteFile(t, r.folder, "DC/Vertigo/Fables/Fables 003.cbz", testkit.Comic(t, 1, 1, "<Publisher>DC Comics</Publisher>"))
	r.scanned("normal")
	r.mustBe("Fables: Fables 003 3 - -")
	if got := values[string](r, "select publisher || ' ' || (custom_metadata->>'shelf') from series where tenant_id = app.tenant()"); !slices.Equal(got, []string{"DC Comics DC / Vertigo"}) {
		t.Errorf("%q", got)
	}
	r = newRig(t)
	r.choose("publisher_hierarchy", "", "filename", "", "filename")
	testkit.WriteFile(t, r.folder, "DC/Fables/Fables 003.cbz", testkit.Comic(t, 1, 1, "<Publisher>Other</Publisher><Summary>Wolves</Summary><Year>2002</Year>"))
	r.scanned("normal")
	if got := values[string](r, "select publisher || ' ' || summary || ' ' || year from series where tenant_id = app.tenant()"); !slices.Equal(got, []string{"DC Wolves 2002"}) {
		t.Errorf("the folder's publisher stays, the rest is filled: %q", got)
	}
}

// In a flat library the metadata decides if no pattern matches; a book moves after it was read, the emptied series is
// deleted, and a rescan changes nothing.
func TestFlatMovesBooksByMetadata(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("flat", "", "filename", "", "file_order")
	testkit.WriteFile(t, r.folder, "a/Saga 001.cbz", testkit.Comic(t, 1, 1, "<Series>Saga (2012)</Series>"))
	testkit.WriteFile(t, r.folder, "b/Something 2.cbz", testkit.Comic(t, 2, 1, "<Series>saga  (2012)</Series>"))
	testkit.WriteFile(t, r.folder, "[Naruto] v01.cbz", testkit.Comic(t, 3, 1, "<Series>Other</Series>"))
	testkit.WriteFile(t, r.folder, "c/Plain 004.cbz", testkit.Comic(t, 4, 1, ""))
	r.scanned("normal")
	want := []string{"Naruto: [Naruto] v01 1 1 -", "Plain: Plain 004 1 - -", "Saga (2012): Saga 001 1 - -", "Saga (2012): Something 2 2 - -"}
	r.mustBe(want...)
	if n := values[int64](r, "select series from library_count where tenant_id = app.tenant()"); n[0] != 3 {
		t.Errorf("%d series are counted", n[0])
	}
	before := values[string](r, "select id::text || xmin from series where tenant_id = app.tenant() order by 1")
	r.scanned("normal")
	if after := values[string](r, "select id::text || xmin from series where tenant_id = app.tenant() order by 1"); !slices.Equal(before, after) {
		t.Error("a rescan changed series")
	}
	r.scanned("deep")
	r.mustBe(want...)
	if n := values[int64](r, "select count(*) from series where tenant_id = app.tenant()"); n[0] != 3 {
		t.Errorf("%d series after a deep scan", n[0])
	}
	testkit.WriteFile(t, r.folder, "b/Something 2.cbz", testkit.Comic(t, 22, 2, "<Series>Elsewhere</Series>"))
	r.scanned("normal")
	r.mustBe("Elsewhere: Something 2 1 - -", "Naruto: [Naruto] v01 1 1 -", "Plain: Plain 004 1 - -", "Saga (2012): Saga 001 1 - -")
}

func TestCustomStrategies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("custom", `{"pattern":"^(?P<publisher>[^/]+)/(?P<series>[^/]+)/","seriesNameTemplate":"{series} ({publisher})"}`,
		"custom", `{"pattern":"^(?P<volume>\\d+)x(?P<chapter>[\\d.]+)(?: - (?P<title>.+))?$","titleTemplate":"{series} {volume}-{chapter} {title}","fallback":"smart"}`, "metadata")
	testkit.WriteFile(t, r.folder, "DC/Batman/one/02x003.5 - Knight.cbz", testkit.Comic(t, 1, 1, "<Number>9</Number>"))
	testkit.WriteFile(t, r.folder, "DC/Batman/two/plain v04.cbz", testkit.Comic(t, 2, 1, "<Title>Volume 4</Title>"))
	testkit.WriteFile(t, r.folder, "loose/x.cbz", testkit.Comic(t, 3, 1, "<Title>Named</Title>"))
	r.scanned("normal")
	r.mustBe("Batman (DC): Batman (DC) 02-003.5 Knight 9 2 3.5", "Batman (DC): plain v04 - 4 -", "loose: Named - - -")
}

// Files are sorted by name, regardless of how extensions or slashes would compare.
func TestFileOrder(t *testing.T) {
	t.Parallel()
	for number, order := range map[string][]string{
		"file_order": {"S/A/T.cbz", "S/A/T 2.cbz", "S/A/T 10.cbz", "S/A/T 10 copy.cbr", "S/A/T 10.5.cbz", "S/A extra/T 1.cbz", "S/B.x/1.cbz", "S/B.x/1.5.cbz", "S/Z.cbz",
			"S/書/(上).cbz", "S/書/(中).cbz", "S/書/(下).cbz", "S/本/本 上巻.cbz", "S/本/本 中巻.cbz", "S/本/本 下巻.cbz",
			"S/本/陰陽師 前編.cbz", "S/本/陰陽師 中編.cbz", "S/本/陰陽師 後編.cbz", "S/本/陰陽師 巻一.cbz", "S/本/陰陽師 巻三.cbz", "S/本/陰陽師 巻二十.cbz",
			"S/話/第一話 七.cbz", "S/話/第二話 三.cbz", "S/話/第七話.cbz", "S/話/第一〇話.cbz", "S/話/第十二話.cbz", "S/話/第二十話.cbz", "S/話/第百二話.cbz", "S/話/第一百零五話.cbz", "S/話/第一千零一話.cbz",
			"S/語/其の一.cbz", "S/語/其の二.cbz", "S/語/其の三.cbz", "S/語/其の十.cbz"},
		// No numbers in the names.
		"smart": {"S/A/T.cbz", "S/A/T a.cbz", "S/A/T a copy.cbr", "S/A/T a.m.cbz", "S/A extra/a.cbz", "S/Z.cbz"},
	} {
		t.Run(number, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.choose("series_volume_chapter", "", "filename", "", number)
			for i, key := range order {
				testkit.WriteFile(t, r.folder, key, testkit.Comic(t, i, 1, ""))
			}
			r.scanned("normal")
			if got := values[string](r, "select key from book where tenant_id = app.tenant() and deleted_at is null order by number"); !slices.Equal(got, order) {
				t.Errorf("%q", got)
			}
		})
	}
}

// Other strategies for names and numbers take effect when a book is analysed again, and never for locked fields.
func TestChangingStrategies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("series_volume", "", "filename", "", "file_order")
	testkit.WriteFile(t, r.folder, "S/S v03.cbz", testkit.Comic(t, 1, 1, "<Title>Third</Title><Number>30</Number><Volume>5</Volume>"))
	testkit.WriteFile(t, r.folder, "S/S v04.cbz", testkit.Comic(t, 2, 1, "<Title>Fourth</Title><Number>40</Number>"))
	r.scanned("normal")
	r.mustBe("S: S v03 1 3 -", "S: S v04 2 4 -")
	if _, err := r.db.Owner.Pool().Exec(context.Background(), `update book_metadata set locks = '{titleLock,numberLock}'
		where book_id = (select id from book where key = 'S/S v04.cbz')`); err != nil {
		t.Fatal(err)
	}
	r.choose("series_volume", "", "metadata_first", "", "metadata")
	r.scanned("normal")
	r.mustBe("S: S v03 1 3 -", "S: S v04 2 4 -")
	r.scanned("deep")
	r.mustBe("S: Third 30 5 30", "S: S v04 2 - 40")
	r.choose("series_volume", "", "series_name", "", "file_order")
	r.scanned("deep")
	r.mustBe("S: S v.03 1 3 -", "S: S v04 2 4 -")
}
