package duplicate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const seriesURL = "/api/v1/duplicates/series"

type seriesGroup struct {
	ID, MatchType, MatchKey string
	LibraryID               *string
	DuplicateCount          int
	Members                 []struct {
		ID, LibraryID, LibraryName, Title, UpdatedAt string
		BookCount                                    int
	}
}

func (g seriesGroup) titles() (out []string) {
	for _, m := range g.Members {
		out = append(out, m.LibraryName+"/"+m.Title)
	}
	return out
}

type seriesPage struct {
	Data                                                             []seriesGroup
	Page, Total, TotalPages                                          int
	TitleGroups, ExternalIDGroups, TotalGroups, TotalDuplicateSeries int
}

// shelves are libraries whose series have titles and external ids.
type shelves struct {
	*testkit.Server
	t *testing.T
}

func (s *shelves) exec(sql string, args ...any) {
	s.t.Helper()
	s.DB.Exec(s.t, sql, args...)
}

func (s *shelves) library(tenant uuid.UUID, name string) uuid.UUID {
	id := uuid.New()
	s.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, $3, 's3://b', 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, id, name)
	return id
}

// series creates a series with one book.
func (s *shelves) series(tenant, library uuid.UUID, title string) uuid.UUID {
	id := uuid.New()
	s.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, $5)`, tenant, id, library, title, naming.Normalize(title))
	s.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		values ($1, $2, $3, $2, $4, 1, now(), 'cbz', $4, $4, $4)`, tenant, id, library, title)
	return id
}

func (s *shelves) known(tenant, series uuid.UUID, source, as string) {
	s.exec("insert into external_id (tenant_id, id, series_id, source, external_id) values ($1, $2, $3, $4, $5)", tenant, uuid.New(), series, source, as)
}

func (s *shelves) trust(tenant uuid.UUID, sources string) {
	s.exec(`insert into setting (tenant_id, key, value) values ($1, 'duplicate_detection.trusted_external_id_sources', $2)
		on conflict (tenant_id, key) do update set value = excluded.value`, tenant, sources)
}

func (s *shelves) find(tenant uuid.UUID) duplicate.Result {
	s.t.Helper()
	res, err := (&duplicate.Finder{Database: s.DB.App}).Find(s.In(tenant), task.Held{})
	if err != nil {
		s.t.Fatal(err)
	}
	return res.(duplicate.Result)
}

func (s *shelves) page(c *testkit.Client, query string) (p seriesPage) {
	s.t.Helper()
	c.Do("GET", seriesURL+query, nil).Want(200).JSON(&p)
	return p
}

func newShelves(t *testing.T) *shelves {
	return &shelves{testkit.Serve(t, func(a *httpapi.API, d *db.DB) { duplicate.Routes(a, d, nil) }), t}
}

func TestSeriesDuplicates(t *testing.T) {
	t.Parallel()
	s := newShelves(t)
	c, other := s.User(t, "one", auth.Maintainer), s.User(t, "two", auth.Admin)
	comics, manga := s.library(c.Tenant, "Comics"), s.library(c.Tenant, "Manga")
	akira, colour := s.series(c.Tenant, comics, "Akira"), s.series(c.Tenant, comics, "AKIRA")
	elsewhere := s.series(c.Tenant, manga, "Akira") // in another library, which may be intended
	s.series(c.Tenant, comics, "Akira Club")
	gone := s.series(c.Tenant, comics, "Akíra")
	s.exec("update book set deleted_at = now() where id = $1", gone)
	for _, library := range []uuid.UUID{s.library(other.Tenant, "Theirs")} {
		s.known(other.Tenant, s.series(other.Tenant, library, "Akira"), "plugin:trusted", "7")
	}
	s.known(c.Tenant, akira, "plugin:trusted", "7")
	s.known(c.Tenant, elsewhere, "plugin:trusted", "7")
	s.known(c.Tenant, colour, "plugin:other", "7")
	s.known(c.Tenant, elsewhere, "plugin:other", "7")

	if p := s.page(c, ""); p.Total != 0 || p.Data == nil {
		t.Errorf("before a search: %+v", p)
	}
	if res := s.find(c.Tenant); res.SeriesFound != 1 || res.Found != 0 {
		t.Errorf("%+v", res)
	}
	p := s.page(c, "")
	if p.Total != 1 || p.TitleGroups != 1 || p.TotalGroups != 1 || p.TotalDuplicateSeries != 2 || p.ExternalIDGroups != 0 {
		t.Fatalf("%+v", p)
	}
	byTitle := p.Data[0]
	if byTitle.MatchType != "title" || byTitle.MatchKey != "akira" || byTitle.LibraryID == nil || *byTitle.LibraryID != comics.String() || byTitle.DuplicateCount != 2 ||
		!slices.Equal(byTitle.titles(), []string{"Comics/Akira", "Comics/AKIRA"}) || byTitle.Members[0].BookCount != 1 || byTitle.Members[0].UpdatedAt == "" {
		t.Errorf("%+v", byTitle)
	}

	// Only ids of trusted sources group series across libraries.
	s.trust(c.Tenant, `["plugin:trusted"]`)
	if res := s.find(c.Tenant); res.SeriesFound != 1 || res.SeriesRemoved != 0 {
		t.Errorf("%+v", res)
	}
	p = s.page(c, "?matchType=external_id")
	if p.Total != 1 || len(p.Data) != 1 || p.TotalGroups != 2 || p.TitleGroups != 1 || p.ExternalIDGroups != 1 || p.TotalDuplicateSeries != 4 {
		t.Fatalf("%+v", p)
	}
	if g := p.Data[0]; g.MatchType != "external_id" || g.MatchKey != "plugin:trusted:7" || g.LibraryID != nil || !slices.Equal(g.titles(), []string{"Comics/Akira", "Manga/Akira"}) {
		t.Errorf("%+v", g)
	}
	if p := s.page(c, "?matchType=title&pageSize=1"); p.Total != 1 || p.Data[0].ID != byTitle.ID {
		t.Errorf("%+v", p)
	}
	if p := s.page(c, "?pageSize=1&page=2"); p.Total != 2 || p.TotalPages != 2 || len(p.Data) != 1 || len(p.Data[0].Members) != 2 {
		t.Errorf("%+v", p)
	}
	c.Do("GET", seriesURL+"?matchType=colour", nil).Want(400)
	if p := s.page(other, ""); p.Total != 0 || p.TotalGroups != 0 {
		t.Errorf("another tenant sees %+v", p)
	}
	s.trust(c.Tenant, `[]`) // groups of a source that is no longer trusted are hidden, and deleted by the next search
	if p := s.page(c, ""); p.Total != 1 {
		t.Errorf("%+v", p)
	}
	if res := s.find(c.Tenant); res.SeriesRemoved != 1 || res.SeriesFound != 0 {
		t.Errorf("%+v", res)
	}
}

func TestDismissedSeriesDuplicates(t *testing.T) {
	t.Parallel()
	s := newShelves(t)
	c, other := s.User(t, "one", auth.Maintainer), s.User(t, "two", auth.Admin)
	library := s.library(c.Tenant, "Comics")
	s.series(c.Tenant, library, "Saga")
	two, three := s.series(c.Tenant, library, "SAGA"), s.series(c.Tenant, library, "Sága")
	s.find(c.Tenant)
	group := seriesURL + "/" + s.page(c, "").Data[0].ID
	lone := s.series(c.Tenant, library, "Lone")
	s.series(c.Tenant, library, "LONE")
	s.find(c.Tenant)
	other.Do("DELETE", group, nil).Want(404)
	s.User(t, "one", auth.Reader).Do("DELETE", group, nil).Want(403)
	c.Do("DELETE", seriesURL+"/x", nil).Want(400)
	c.Do("DELETE", "/api/v1/duplicates/"+group[len(seriesURL)+1:], nil).Want(404) // it is no group of books
	c.Do("DELETE", group, nil).Want(204)
	c.Do("DELETE", group, nil).Want(404)
	p := s.page(c, "")
	if p.Total != 1 || p.Data[0].MatchKey != "lone" {
		t.Fatalf("another group went, too: %+v", p)
	}
	c.Do("DELETE", seriesURL+"/"+p.Data[0].ID, nil).Want(204)
	s.exec("update book set deleted_at = now() where id = $1", lone)
	s.find(c.Tenant) // a dismissal is kept while one is left
	s.exec("update book set deleted_at = null where id = $1", lone)
	if s.find(c.Tenant); s.page(c, "").Total != 0 {
		t.Error("a dismissed group came back")
	}
	s.exec("update book set deleted_at = now() where id = $1", three)
	if s.find(c.Tenant); s.page(c, "").Total != 0 {
		t.Error("it came back since one of its series went")
	}
	s.exec("update book set deleted_at = null where id = $1", three)
	if s.find(c.Tenant); s.page(c, "").Total != 0 {
		t.Error("it came back with what was dismissed")
	}
	s.exec("update series set search_title = 'other' where id = $1", two)
	s.series(c.Tenant, library, " saga")
	if p := s.page(c, ""); p.Total != 1 || p.Data[0].DuplicateCount != 3 {
		t.Errorf("another series joined: %+v", p)
	}
	// Deleting a library deletes its groups.
	s.exec("delete from library where id = $1", library)
	if p := s.page(c, ""); p.Total != 0 {
		t.Errorf("%+v", p)
	}
}

// The lists look up the books and series of their groups; they do not scan all.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := newShelves(t)
	c := s.User(t, "one", auth.Maintainer)
	library, _ := s.Crowd(t, s.One, c.ID)
	s.exec("insert into external_id (tenant_id, id, series_id, source, external_id) select tenant_id, gen_random_uuid(), id, 'plugin:x', id::text from series")
	s.exec("insert into series_duplicate (tenant_id, id, library_id, value) select $1, gen_random_uuid(), $2, 'series ' || n from generate_series(1, 20) n", s.One, library)
	s.exec("insert into series_duplicate (tenant_id, id, source, value) select $1, gen_random_uuid(), 'plugin:x', n::text from generate_series(1, 20) n", s.One)
	s.exec("update book set fingerprint = md5(series_id::text || (number::integer / 2))")
	s.exec("insert into duplicate (tenant_id, id, fingerprint) select $1, gen_random_uuid(), fingerprint from (select distinct fingerprint from book where tenant_id = $1 limit 2000) f", s.One)
	s.exec("vacuum analyze")
	scanned, plan := s.Scans(t, c, duplicate.SeriesSQL)
	if slices.Contains(scanned, "series") || slices.Contains(scanned, "external_id") {
		t.Errorf("all of %v is read: %s", scanned, plan)
	}
	if _, plan := s.Scans(t, c, duplicate.GroupsSQL); !strings.Contains(plan, "book_fingerprint") {
		t.Errorf("books are not looked up by their content: %s", plan)
	} else if strings.Contains(plan, `"Sort Key": ["g.created_at`) {
		t.Errorf("a page looks up the books of all groups: %s", plan)
	}
}
