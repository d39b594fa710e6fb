package catalog_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/catalog"
	"github.com/longbox/longbox/shared/testkit"
)

// Collections link to their series and read lists to their books, in both versions, each in its own order.
func TestCollections(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, catalog.Routes)
	me, foreign := s.User(t, "one", "reader"), s.User(t, "two", "admin")
	nine := newShelf(t, s, s.One, "Nine")
	s.DB.Exec(t, "update library set name = 'Other'")
	ten := newShelf(t, s, s.One, "Ten")
	made := func(kind, name string, condition any, members ...uuid.UUID) string {
		t.Helper()
		id := uuid.New()
		s.DB.Exec(t, "insert into collection (tenant_id, id, kind, name, summary, ordered, condition) values ($1, $2, $3, $4, 'Of all', true, $5)", s.One, id, kind, name, condition)
		column := map[string]string{"series": "series_id", "books": "book_id"}[kind]
		s.DB.Exec(t, "insert into collection_member (tenant_id, id, collection_id, "+column+`, place) select $1, gen_random_uuid(), $2, u.id, u.n
			from unnest($3::uuid[]) with ordinality u(id, n)`, s.One, id, members)
		return id.String()
	}
	best := made("series", "Best & more", nil, ten.series, nine.series)
	made("series", "All", `{"title": {"operator": "isNotNull"}}`)
	list := made("books", "To read", nil, ten.books[1], nine.books[2], nine.books[0])

	root := read(t, me, "/opds/", "navigation") // as typed by a user
	me.Do("GET", "/opds/v2/", nil).Want(200)
	me.Do("GET", "/opds/v1/catalog/", nil).Want(200)
	me.Do("GET", "/opds//", nil).Want(404)
	all := read(t, me, links(root.Entries[1].Links)["subsection"], "navigation")
	if titles(all) != "All, Best & more" || all.Total != "2" || links(all.Links)["up"] != "/opds" || all.Entries[1].Content != "Of all" {
		t.Fatalf("collections: %+v", all)
	}
	l := links(all.Entries[1].Links)
	if l["http://opds-spec.org/image"] != "/api/v1/collections/"+best+"/thumbnail" {
		t.Errorf("the cover of a collection: %v", l)
	}
	if one := read(t, me, l["subsection"], "navigation"); one.Title != "Best & more" || one.Total != "2" || titles(one) != "Ten, Nine" || links(one.Links)["up"] != "/opds/collections" || one.Author != "Longbox" {
		t.Errorf("a collection: %+v", one)
	}
	if automatic := read(t, me, links(all.Entries[0].Links)["subsection"], "navigation"); automatic.Title != "All" || titles(automatic) != "Nine, Ten" || automatic.Total != "2" {
		t.Errorf("an automatic collection: %+v", automatic)
	}
	all = read(t, me, links(root.Entries[2].Links)["subsection"], "navigation")
	if titles(all) != "To read" {
		t.Fatalf("read lists: %+v", all)
	}
	if one := read(t, me, links(all.Entries[0].Links)["subsection"]+"?pageSize=1&page=2", "acquisition"); one.Title != "To read" || one.Total != "2" || titles(one) != "Nine 1" ||
		links(one.Links)["previous"] != "/opds/readlists/"+list+"?page=1&pageSize=1" {
		t.Errorf("the second book of a read list: %+v", one)
	}

	root2 := read2(t, me, "/opds/v2")
	if f := read2(t, me, root2.Navigation[1].Href); len(f.Navigation) != 2 || f.Navigation[1].Title != "Best & more" || *f.Metadata.NumberOfItems != 2 {
		t.Errorf("collections: %+v", f)
	} else if one := read2(t, me, f.Navigation[1].Href); len(one.Navigation) != 2 || one.Navigation[0].Title != "Ten" || one.Metadata.Title != "Best & more" {
		t.Errorf("a collection: %+v", one)
	}
	if f := read2(t, me, root2.Navigation[2].Href); len(f.Navigation) != 1 {
		t.Errorf("read lists: %+v", f)
	} else if one := read2(t, me, f.Navigation[0].Href); len(one.Publications) != 2 || one.Publications[0].Metadata.Title != "Ten 2" || one.to("up") != "/opds/v2/readlists" {
		t.Errorf("a read list: %+v", one)
	}
	for _, path := range []string{"/opds/collections/" + best, "/opds/v2/readlists/" + list} {
		foreign.Do("GET", path, nil).Want(404)
	}
	for _, path := range []string{"/opds/collections/" + list, "/opds/readlists/" + best, "/opds/v2/collections/" + uuid.NewString()} {
		me.Do("GET", path, nil).Want(404)
	}
}
