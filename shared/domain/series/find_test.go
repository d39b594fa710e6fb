package series_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/testkit"
)

// find returns the titles found by a search of all libraries, and checks that the filtered list agrees.
func find(t testing.TB, c *testkit.Client, query string) []string {
	t.Helper()
	body, _ := json.Marshal(map[string]any{"query": query, "fullTextSearch": query})
	got, total := titles(t, c.Do("POST", "/api/v1/series/search", string(body)).Want(200))
	if list, n := titles(t, c.Do("POST", "/api/v1/series/list", string(body)).Want(200)); strings.TrimSpace(query) != "" && (list != got || total != n) {
		t.Errorf("%q: the list has %s of %d, the search %s of %d", query, list, n, got, total)
	}
	if got == "" {
		return []string{}
	}
	return strings.Split(got, ",")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreign := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	comics, manga := newLibrary(t, s, s.One, "comics"), newLibrary(t, s, s.One, "manga")
	for i, name := range []string{"Batman", "Batman: Year One", "All-Star Batman", "Detective Batmania", "Year of the Batman", "100% Wolf", "1000 Wolves",
		"Under_score", "Underxscore", `Back\slash`, "Café", "A Batgirlia", "Hasty Batgirl: Ser", "Assassin's Fate", "Assassin’s Quest", "X-Men", "Xamen", "ＢＬＥＡＣＨ！", "ΟΔΥΣΣΕΥΣ", "Οδυσσευς"} {
		newSeries(t, s, s.One, comics, name, i, 1)
	}
	newSeries(t, s, s.One, manga, "進撃の巨人", 1, 1)
	newSeries(t, s, s.One, manga, "ナルト Batman", 2, 1)
	exec(t, s, "update series set search_title = 'cafe' where title = 'Café'") // normalized by naming.Normalize
	newSeries(t, s, s.Two, newLibrary(t, s, s.Two, "theirs"), "Batman of the others", 1, 1)

	for query, want := range map[string][]string{
		// The title itself, then titles that begin with it, contain it as a word, or contain it within a word.
		"batman":        {"Batman", "Batman: Year One", "All-Star Batman", "Year of the Batman", "ナルト Batman", "Detective Batmania"},
		"  BÁTMAN  ":    {"Batman", "Batman: Year One", "All-Star Batman", "Year of the Batman", "ナルト Batman", "Detective Batmania"},
		"year batman":   {"Batman: Year One", "Year of the Batman"},
		"café":          {"Café"},
		"巨人":            {"進撃の巨人"},
		"撃":             {"進撃の巨人"},
		"ナルト":           {"ナルト Batman"},
		"100%":          {"100% Wolf"},
		"0%":            {"100% Wolf"},
		"r_s":           {"Under_score"},
		`k\s`:           {`Back\slash`},
		"o":             {"100% Wolf", "1000 Wolves", "Batman: Year One", "Under_score", "Underxscore", "Year of the Batman"},
		"batmna":        {},
		"of the others": {},
		"batgirl":       {"Hasty Batgirl: Ser", "A Batgirlia"},
		"wolf 100%":     {"100% Wolf"},
		"assassin’s":    {"Assassin's Fate", "Assassin’s Quest"},
		"assassin's":    {"Assassin's Fate", "Assassin’s Quest"},
		"x–men":         {"X-Men"},
		"ＷＯＬＦ":          {"100% Wolf"},
		"bleach!":       {"ＢＬＥＡＣＨ！"},
		"ｂｌｅａｃｈ":        {"ＢＬＥＡＣＨ！"},
		"οδυσσευς":      {"Οδυσσευς", "ΟΔΥΣΣΕΥΣ"},
		"ΟΔΥΣΣΕΥΣ":      {"Οδυσσευς", "ΟΔΥΣΣΕΥΣ"},
		"%s %I":         {},
		"'; drop":       {},
		"":              {},
		" ":             {},
	} {
		got := find(t, me, query)
		if query == "o" { // in no meaningful order
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	if got := find(t, foreign, "batman"); !slices.Equal(got, []string{"Batman of the others"}) {
		t.Errorf("another tenant finds %q", got)
	}

	for path, c := range map[string]struct{ body, want string }{
		"/list?sort=name,desc":      {`{"fullTextSearch":"year"}`, "Year of the Batman,Batman: Year One"},
		"/list?sort=relevance":      {`{"fullTextSearch":"year"}`, "Year of the Batman,Batman: Year One"},
		"/list?sort=relevance,asc":  {`{"fullTextSearch":"year"}`, "Batman: Year One,Year of the Batman"},
		"/list?sort=relevance,desc": {`{"fullTextSearch":" ","condition":{"libraryId":{"operator":"is","value":"` + manga.String() + `"}}}`, "ナルト Batman,進撃の巨人"},
		"/list?sort=score":          {`{"fullTextSearch":"year"}`, "Year of the Batman,Batman: Year One"},
		"/list?sort=score,asc":      {`{"fullTextSearch":"year"}`, "Batman: Year One,Year of the Batman"},
		"/list?sort=date_read,desc": {`{"fullTextSearch":"year"}`, "Batman: Year One,Year of the Batman"},
		"/list?pageSize=1&page=2":   {`{"fullTextSearch":"year"}`, "Batman: Year One"},
		"/list":                     {`{"fullTextSearch":"batman","condition":{"libraryId":{"operator":"is","value":"` + manga.String() + `"}}}`, "ナルト Batman"},
	} {
		if got, _ := titles(t, me.Do("POST", "/api/v1/series"+path, c.body).Want(200)); got != c.want {
			t.Errorf("%s %s: %s, want %s", path, c.body, got, c.want)
		}
	}
	if got, total := titles(t, me.Do("POST", "/api/v1/series/search?pageSize=1", `{"query":"batman","full":true,"libraryId":"`+manga.String()+`"}`)); got != "ナルト Batman" || total != 1 {
		t.Errorf("in one library: %s of %d", got, total)
	}
	if got, total := titles(t, me.Do("POST", "/api/v1/series/search?pageSize=1&page=2&sort=name", `{"query":"year"}`)); got != "Year of the Batman" || total != 2 {
		t.Errorf("the second by name: %s of %d", got, total)
	}
}

// A series is found by its alternate titles, too, and only once.
func TestOtherTitlesAreFound(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreign, limited := s.User(t, "one", "reader"), s.User(t, "two", "reader"), s.User(t, "one", "reader")
	library := newLibrary(t, s, s.One, "manga")
	for name, others := range map[string][]string{"Attack on Titan": {"進撃の巨人", "L'Attaque  des Titans", "Titan Attack"}, "Titan": {"Título"}, "Plain": nil} {
		id, _ := newSeries(t, s, s.One, library, name, 1, 1)
		for _, title := range others {
			exec(t, s, "insert into alternate_title (tenant_id, id, series_id, label, title) values ($1, gen_random_uuid(), $2, 'l', $3)", s.One, id, title)
		}
	}
	for query, want := range map[string][]string{"巨人": {"Attack on Titan"}, "attaque des titans": {"Attack on Titan"}, "titan": {"Titan", "Attack on Titan"}, "titulo": {"Titan"},
		"TÍTULO": {"Titan"}, "attack titan": {"Attack on Titan"}, "titan attack": {"Attack on Titan"}, "plain": {"Plain"}, "titel": {}} {
		if got := find(t, me, query); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
		if got := find(t, foreign, query); len(got) != 0 {
			t.Errorf("another tenant: %q finds %q", query, got)
		}
	}
	exec(t, s, "insert into setting (tenant_id, key, value) values ($1, 'search.fuzzy.enabled', 'true')", s.One)
	if got := find(t, me, "attaqeu"); !slices.Equal(got, []string{"Attack on Titan"}) {
		t.Errorf("what looks like another title: %q", got)
	}
	tag := uuid.New()
	exec(t, s, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'for some')", s.One, tag)
	exec(t, s, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'allow')", s.One, tag, limited.ID)
	if got := find(t, limited, "巨人"); len(got) != 0 {
		t.Errorf("found by a title that is hidden: %q", got)
	}
}

// The database normalizes titles like naming.Normalize.
func TestSearchForm(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	for _, title := range []string{"", " ", "Café", "CAFE\u0301  au lait ", "ÅNGSTRÖM", "Łódź", "Straße", "Ø ß æ Œ", "Ǆ", "ṩ", "Ἀθηνᾶ", "Ёлка й", "が", "か\u3099", "ﬁ", "한국어", "א\u05b8", "ไทย", "हिन्दी",
		"a\u00a0b\u3000c\u2003d\te\nf", "İstanbul", "100% \\_", "Ⅷ K", "ậ ế", "x\u0307\u0323", "9\u0301", "-\u0301a", "ΟΔΥΣΣΕΥΣ", "🙂 Z"} {
		var got string
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select app.search_form($1)", title).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := naming.Normalize(title); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}

// With the setting, a search tolerates misspellings; exact matches come first.
func TestFuzzySearch(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	library := newLibrary(t, s, s.One, "comics")
	for i, name := range []string{"Naruto", "The Sandman", "Sandmnn", "Watchmen", "Batman and Robin: Year One", "Year Batmen"} {
		newSeries(t, s, s.One, library, name, i, 1)
	}
	exec(t, s, "insert into setting (tenant_id, key, value) values ($1, 'search.fuzzy.enabled', 'true'), ($2, 'search.fuzzy.enabled', 'false')", s.One, s.Two)
	for query, want := range map[string][]string{
		"sandmnn": {"Sandmnn", "The Sandman"}, "nartuo": {"Naruto"}, "sandman the": {"The Sandman", "Sandmnn"}, "zzz": {}, "watch": {"Watchmen"},
		"year batman": {"Batman and Robin: Year One", "Year Batmen"},
	} {
		if got := find(t, me, query); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	exec(t, s, "update setting set value = 'false'")
	if got := find(t, me, "nartuo"); len(got) != 0 {
		t.Errorf("without the setting nartuo finds %q", got)
	}
}

// Under row-level security only the owner's function uses the trigram index.
func TestSearchUsesTheIndex(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	s.Crowd(t, s.One, me.ID)
	exec(t, s, "insert into alternate_title (tenant_id, id, series_id, label, title) select s.tenant_id, gen_random_uuid(), s.id, 'l' || n, 'Other ' || s.title || n from series s, generate_series(1, 3) n")
	exec(t, s, "vacuum analyze alternate_title")
	ctx := context.Background()
	conn, err := s.DB.Owner.Pool().Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	scans := func() (n, whole int64) {
		t.Helper()
		if _, err := conn.Exec(ctx, "select pg_stat_force_next_flush()"); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(ctx, "select sum(idx_scan) from pg_stat_user_indexes where indexrelname in ('series_find', 'book_find', 'alternate_title_search')").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(ctx, "select sum(seq_scan) from pg_stat_user_tables where relname in ('series', 'book', 'alternate_title')").Scan(&whole); err != nil {
			t.Fatal(err)
		}
		return n, whole
	}
	before, wholeBefore := scans()
	for _, in := range []string{"series", "book"} {
		var n int
		if err := conn.QueryRow(ctx, "select count(*) from app.use_tenant($1), app.find($2, 'series 977', null, null, false)", s.One, in).Scan(&n); err != nil || n == 0 {
			t.Fatalf("%s: %d found, %v", in, n, err)
		}
	}
	var n int
	if err := conn.QueryRow(ctx, "select count(*) from app.use_tenant($1), app.find('series', 'other', null, null, false)", s.One).Scan(&n); err != nil || n != 2000 {
		t.Fatalf("by a word that all other titles have %d are found, %v", n, err)
	}
	after, whole := scans()
	if after-before != 5 || whole != wholeBefore {
		t.Errorf("three searches used indexes %d times, and read %d tables from end to end", after-before, whole-wholeBefore)
	}
}
