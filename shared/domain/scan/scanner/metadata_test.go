package scanner_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// Every element of ComicInfo.xml is stored in the book or the series; invalid values are warnings.
func TestComicInfoIsTakenOverWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/S 1.cbz", testkit.Comic(t, 1, 2, `<Title>T</Title><Series>S</Series><Number>1½</Number><Count>12</Count><Volume>2012</Volume>
		<AlternateSeries>Crossover</AlternateSeries><LocalizedSeries>エス</LocalizedSeries><AlternateNumber>3</AlternateNumber><Summary>Sum</Summary><Notes>Tagged</Notes>
		<Year>2012</Year><Month>13</Month><Day>5</Day><Writer>A, B</Writer><CoverArtist>C</CoverArtist><Publisher>P</Publisher><Imprint>I</Imprint>
		<Genre>Drama, Comedy</Genre><Tags>short</Tags><Web>https://example.org/1</Web><LanguageISO>PT-br</LanguageISO><Format>One-Shot</Format>
		<Manga>YesAndRightToLeft</Manga><Characters>X, Y</Characters><StoryArc>Arc</StoryArc><SeriesGroup>G</SeriesGroup><AgeRating>Teen</AgeRating>
		<CommunityRating>4.5</CommunityRating><Review>Good</Review><GTIN>978-1-234567-89-7</GTIN>`))
	testkit.WriteFile(t, r.folder, "S/S 2.cbz", testkit.Comic(t, 2, 2, `<AgeRating>Mature 17+</AgeRating><Count>14</Count><LanguageISO>klingonish</LanguageISO>`))
	r.scanned("normal")
	doc := values[string](r, `select concat_ws('|', metadata->>'bookType', metadata->>'isbns', metadata->>'languageIso', metadata->>'seriesTotal', metadata->>'day',
		metadata->'customMetadata'->'comicinfo'->>'storyArc', metadata->'customMetadata'->'comicinfo'->>'characters', metadata->'customMetadata'->'comicinfo'->>'communityRating',
		metadata->'customMetadata'->'comicinfo'->>'review', warnings::text)
		from book_metadata m join book b on b.id = m.book_id where b.tenant_id = app.tenant() order by b.key`)
	if want := `oneshot|["9781234567897"]|pt-BR|12|5|["Arc"]|["X", "Y"]|4.5|Good|`; !strings.HasPrefix(doc[0], want) || !strings.Contains(doc[0], "Month") {
		t.Errorf("got  %s\nwant %s and a warning about Month", doc[0], want)
	}
	if !strings.Contains(doc[1], "klingonish") {
		t.Errorf("no warning: %s", doc[1])
	}
	got := values[string](r, `select concat_ws('|', summary, publisher, imprint, year, language, reading_direction, age_rating, coalesce(total_volume_count, total_chapter_count),
		authors->0->>'name') from series where tenant_id = app.tenant()`)
	if want := "Sum|P|I|2012|pt-BR|rtl|17|14|A"; got[0] != want {
		t.Errorf("series %s, want %s", got[0], want)
	}
	if titles := values[string](r, "select label || ' ' || title from alternate_title where tenant_id = app.tenant() order by 1"); !slices.Equal(titles, []string{"Alternate Crossover", "Localized エス"}) {
		t.Errorf("titles %q", titles)
	}
}

// A locked field stays, even if empty, and the lock of a role keeps its people.
func TestLocksHoldAgainstFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/S 1.cbz", testkit.Comic(t, 1, 2, `<Summary>Old</Summary><Writer>A</Writer><Inker>B</Inker>`))
	r.scanned("normal")
	if _, err := r.db.Owner.Pool().Exec(context.Background(), "update book_metadata set locks = '{summaryLock,publisherLock,writerLock}'"); err != nil {
		t.Fatal(err)
	}
	testkit.WriteFile(t, r.folder, "S/S 1.cbz", testkit.Comic(t, 2, 3, `<Summary>New</Summary><Publisher>P</Publisher><Imprint>I</Imprint><Writer>X</Writer><Inker>Y</Inker>`))
	r.scanned("normal")
	got := values[string](r, `select concat_ws('|', metadata->>'summary', coalesce(metadata->>'publisher', '-'), metadata->>'imprint',
		(select string_agg(a->>'role' || ' ' || (a->>'name'), ', ' order by a->>'role') from jsonb_array_elements(metadata->'authors') a))
		from book_metadata where tenant_id = app.tenant()`)
	if want := "Old|-|I|inker Y, writer A"; got[0] != want {
		t.Errorf("got %s, want %s", got[0], want)
	}
}

// A plugin's value stays if the file has none, and is replaced if the file has one.
func TestFilledFieldsOutlastFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	is := func(what, want string) {
		t.Helper()
		got := values[string](r, `select concat_ws('|', b.title, coalesce(metadata->>'summary', '-'), coalesce(metadata->>'subtitle', '-'), coalesce(metadata->>'publisher', '-'),
			coalesce((select string_agg(a->>'role' || ' ' || (a->>'name'), ', ') from jsonb_array_elements(metadata->'authors') a), '-'), coalesce(b.release_day::text, '-'))
			from book b join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id where b.tenant_id = app.tenant() and b.deleted_at is null`)
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %s", what, got, want)
		}
	}
	testkit.WriteFile(t, r.folder, "S/S 1.cbz", testkit.Comic(t, 1, 2, `<Publisher>P</Publisher>`))
	r.scanned("normal")
	text, year := func(s string) httpapi.Optional[string] { return httpapi.Optional[string]{Set: true, Value: &s} }, int32(1999)
	var b pgx.Batch
	body := book.MetadataBody{Title: text("Title"), Summary: text("Filled"), Subtitle: text("Sub"), Year: httpapi.Optional[int32]{Set: true, Value: &year}}
	body.Publisher, body.Translator = text("Q"), text("T")
	if _, err := book.QueueFill(&b, values[uuid.UUID](r, "select id from book where tenant_id = app.tenant()")[0], []string{}, &body); err != nil {
		t.Fatal(err)
	}
	if err := r.db.App.Run(r.ctx(), &b); err != nil {
		t.Fatal(err)
	}
	is("filled", "Title|Filled|Sub|Q|translator T|19990101")
	r.scanned("deep")
	is("read again", "S 1|Filled|Sub|P|translator T|19990101")
	testkit.WriteFile(t, r.folder, "S/S 1.cbz", testkit.Comic(t, 1, 2, `<Summary>Read</Summary><Writer>W</Writer><Year>2001</Year>`))
	r.scanned("normal")
	is("the file says more", "S 1|Read|Sub|-|writer W|20010101")
	r.rename("S/S 1.cbz", "S/S 2.cbz")
	testkit.WriteFile(t, r.folder, "S/S 2.cbz", testkit.Comic(t, 1, 2, ``))
	r.scanned("normal")
	is("moved, and says nothing", "S 2|-|Sub|-|-|-")
}

// The age rating and the count of a series fall with the file that they came from, but are not taken from anybody else.
func TestSeriesFollowsCorrectedFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("flat", `{"requireMetadata": true}`, "filename", "", "filename")
	write := func(key string, seed int, info string) {
		testkit.WriteFile(t, r.folder, key, testkit.Comic(t, seed, 2+seed, info))
	}
	is := func(what string, want ...string) {
		t.Helper()
		r.scanned("normal")
		got := values[string](r, `select concat_ws(' ', title, age_rating, total_chapter_count) from series where tenant_id = app.tenant() and book_count > 0 order by title`)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	write("1.cbz", 1, `<Series>S</Series><AgeRating>Mature 17+</AgeRating><Count>14</Count>`)
	write("2.cbz", 2, `<Series>S</Series><AgeRating>Teen</AgeRating><Count>12</Count>`)
	write("3.cbz", 3, `<Series>S</Series><AgeRating>9 +</AgeRating>`)
	is("at first", "S 17 14")
	write("1.cbz", 4, `<Series>S</Series><AgeRating>Everyone 10+</AgeRating><Count>10</Count>`)
	is("one is corrected", "S 13 12")
	write("2.cbz", 5, `<Series>T</Series><AgeRating>Teen</AgeRating><Count>12</Count>`)
	is("one belongs to another series", "S 10 10", "T 13 12")
	write("1.cbz", 6, `<Series>S</Series>`)
	is("one says nothing", "S 9", "T 13 12")
	r.db.Exec(t, "update series set age_rating = 11, total_chapter_count = 12, locks = '{totalChapterCount}' where title = 'T'")
	write("2.cbz", 7, `<Series>T</Series><AgeRating>Everyone</AgeRating><Count>3</Count>`)
	is("a person's value and a locked one", "S 9", "T 11 12")
}

// A series is not written if what a book offers is locked or already there.
func TestSeriesThatTakesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.choose("publisher_hierarchy", "", "filename", "", "filename")
	testkit.WriteFile(t, r.folder, "P/S/S 1.cbz", testkit.Comic(t, 1, 2, `<Summary>Sum</Summary><Publisher>P</Publisher><Writer>A</Writer><AgeRating>Teen</AgeRating><Count>12</Count>`))
	r.scanned("normal")
	for _, state := range []string{
		"locks = '{}'",
		"summary = null, authors = null, age_rating = null, total_chapter_count = null, locks = '{summary,authorsJsonLock,ageRating,totalChapterCount}'",
	} {
		if _, err := r.db.Owner.Pool().Exec(t.Context(), "update series set "+state); err != nil {
			t.Fatal(err)
		}
		const written = "select xmin::text from series where tenant_id = app.tenant()"
		before := values[string](r, written)
		r.scanned("deep")
		if after := values[string](r, written); !slices.Equal(before, after) {
			t.Errorf("written with %s", state)
		}
	}
}

// A scan computes the release day like the database; only if a part of it is locked must the database correct it.
func TestReleaseDayOfAFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := r.db.Owner.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want ...string) {
		t.Helper()
		r.scan("normal")
		if got := values[string](r, "select coalesce(release_day::text, 'none') from book where tenant_id = app.tenant() order by key"); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if wrong := values[string](r, `select b.key from book b join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id
			where b.tenant_id = app.tenant() and b.release_day is distinct from app.release_day(m.metadata)`); len(wrong) > 0 {
			t.Errorf("not by their metadata: %q", wrong)
		}
	}
	write := func(name string, seed int, info string) {
		testkit.WriteFile(t, r.folder, "S/"+name+".cbz", testkit.Comic(t, seed, 2, info))
	}
	exec("alter table book_metadata disable trigger user")
	for i, info := range []string{"<Year>1999</Year>", "<Year>1999</Year><Month>12</Month>", "<Year>2000</Year><Day>31</Day>", "<Month>5</Month><Day>5</Day>", "<Year>-44</Year><Month>3</Month>"} {
		write(string(rune('a'+i)), i, info)
	}
	is("19990101", "19991201", "20000131", "none", "none")
	exec("update book_metadata set locks = '{yearLock,monthLock,dayLock}' where (metadata ->> 'day') = '31'")
	write("a", 10, "")
	write("c", 11, "<Year>1980</Year>")
	testkit.WriteFile(t, r.folder, "S/b.cbz", []byte("no archive"))
	is("none", "19991201", "20000131", "none", "none")

	exec("alter table book_metadata enable trigger user")
	exec("update book_metadata set locks = '{yearLock}' where (metadata ->> 'day') = '31'")
	write("c", 12, "<Year>1980</Year><Month>2</Month>")
	is("none", "19991201", "20000201", "none", "none")
}

// Reading a book again removes the ids and links of its older file, but not those of plugins and people.
func TestReferencesOfAnOlderFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 1, "<Web>https://example.org/1</Web>"))
	r.scanned("normal")
	for _, source := range []string{"plugin:x", "manual", "opf"} {
		r.exec("insert into external_id (tenant_id, id, book_id, source, external_id) select tenant_id, gen_random_uuid(), id, $1, 'x' from book", source)
	}
	r.exec("insert into external_link (tenant_id, id, book_id, source_name, url) select tenant_id, gen_random_uuid(), id, 'mine', 'https://example.org/mine' from book")
	references := func() []string {
		return values[string](r, `select source from external_id where tenant_id = app.tenant()
			union all select source_name || ' ' || url from external_link where tenant_id = app.tenant()`)
	}
	r.scanned("deep")
	same(t, "read again", references(), []string{"plugin:x", "manual", "comicinfo https://example.org/1", "mine https://example.org/mine"})
	testkit.WriteFile(t, r.folder, "S/1.cbz", testkit.Comic(t, 1, 2, ""))
	r.scanned("deep")
	same(t, "another file", references(), []string{"plugin:x", "manual", "mine https://example.org/mine"})
}
