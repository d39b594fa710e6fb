package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// There are no links to pages that do not exist, except to the first one of an empty list.
func TestLinks(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	number := func(link *string) string {
		if link == nil {
			return ""
		}
		_, after, _ := strings.Cut(*link, "?page=")
		n, _, _ := strings.Cut(after, "&")
		return n
	}
	for page, want := range map[string][3]string{ // of 120 items: previous, next and last page
		"page=1&pageSize=50": {"", "2", "3"}, "page=2&pageSize=50": {"1", "3", "3"}, "page=3&pageSize=50": {"2", "", "3"}, "page=9&pageSize=50": {"3", "", "3"},
		"page=2&pageSize=60": {"1", "", "2"}, "page=1&pageSize=120": {"", "", "1"},
	} {
		w := ask(a, "GET", "/api/v1/things?"+page)
		var p Page[int]
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if got := [3]string{number(p.Links.Prev), number(p.Links.Next), number(&p.Links.Last)}; got != want {
			t.Errorf("%s: %q, want %q", page, got, want)
		}
		for rel, want := range map[string]bool{"prev": want[0] != "", "next": want[1] != "", "first": true, "last": true, "self": true} {
			if got := strings.Contains(w.Header().Get("Link"), `rel="`+rel+`"`); got != want {
				t.Errorf("%s: Link %s", page, w.Header().Get("Link"))
			}
		}
	}
	empty := NewPage[int](t.Context(), Paging{Page: 1}, nil, 0)
	if empty.TotalPages != 0 || number(&empty.Links.Last) != "1" || empty.Links.Next != nil || empty.Links.Prev != nil {
		t.Errorf("an empty list: %+v", empty)
	}
}

func TestSorting(t *testing.T) {
	t.Parallel()
	fields := []string{"title", Relevance}
	for s, want := range map[Sorting]string{
		{}: "", {Order: "desc"}: " desc", {Sort: "title"}: "title", {Sort: "title", Order: "desc"}: "title desc", {Sort: "title,desc"}: "title desc",
		{Sort: "title,asc"}: "title", {Sort: "title,desc", Order: "desc"}: "title desc",
	} {
		field, desc, err := s.By(fields...)
		if got := field + map[bool]string{true: " desc"}[desc]; err != nil || got != want {
			t.Errorf("%+v: %q, %v", s, got, err)
		}
	}
	for _, s := range []Sorting{{Sort: "size"}, {Sort: "title,"}, {Sort: ",desc"}, {Sort: ","}, {Sort: "title,up"}, {Sort: "title", Order: "up"},
		{Sort: "title,asc", Order: "desc"}, {Sort: "Title"}, {Sort: "title,desc,asc"}} {
		if field, _, err := s.By(fields...); err == nil {
			t.Errorf("%+v is taken for %q", s, field)
		}
	}
	for s, want := range map[Sorting]Sorting{
		{Sort: Relevance, Order: "desc"}: {}, {Sort: Relevance + ",desc"}: {}, {Sort: "best"}: {}, {Sort: "title,desc"}: {Sort: "title,desc"},
	} {
		if got := s.Unranked("best"); got != want {
			t.Errorf("without a search %+v is %+v", s, got)
		}
	}
	for s, want := range map[Sorting]Sorting{
		{}: {Sort: Relevance, Order: "desc"}, {Sort: "best", Order: "asc"}: {Sort: Relevance, Order: "asc"}, {Sort: "title"}: {Sort: "title"},
	} {
		if got := s.BestFirst("best"); got != want {
			t.Errorf("with a search %+v is %+v", s, got)
		}
	}
}
