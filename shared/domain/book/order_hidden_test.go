package book_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// In every order, and with full records, a user from whom series are hidden sees only the others, with correct paging.
func TestOrdersHide(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, all := s.User(t, "one", "reader"), s.User(t, "one", "reader")
	comics := library(t, s, s.One, "comics")
	seen, shown := series(t, s, s.One, comics, "Seen", 3)
	hidden, secret := series(t, s, s.One, comics, "Hidden", 3)
	tag := uuid.New()
	exec(t, s, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'for some')", s.One, tag)
	exec(t, s, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", s.One, hidden, tag)
	exec(t, s, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", s.One, tag, me.ID)
	exec(t, s, `insert into book_metadata (tenant_id, book_id, metadata) select tenant_id, id, '{"year":2000}' from book where id = any($1)`, []uuid.UUID{shown[0], secret[0]})
	read(t, s, me, shown[1], true, 5)
	read(t, s, me, secret[1], true, 5)
	for _, scope := range []string{"/books?", "/libraries/" + comics.String() + "/books?", "/books/recently-added?", "/books?seriesId=" + seen.String() + "&"} {
		for _, field := range []string{"title", "number", "file_size", "page_count", "created_at", "modified_at", "series", "filename", "last_read", "release_date"} {
			for _, direction := range []string{"asc", "desc"} {
				for _, full := range []string{"", "&full=true"} {
					path := "/api/v1" + scope + "sort=" + field + "," + direction + full
					found := map[uuid.UUID]bool{}
					for page := 1; page <= 3; page++ {
						some, total := ids(t, me.Do("GET", fmt.Sprintf("%s&pageSize=2&page=%d", path, page), nil))
						if want := []int{2, 1, 0}[page-1]; len(some) != want || total != 3 {
							t.Errorf("%s: page %d has %d of %d, want %d of 3", path, page, len(some), total, want)
						}
						for _, id := range some {
							found[id] = true
						}
					}
					if len(found) != 3 || !found[shown[0]] || !found[shown[1]] || !found[shown[2]] {
						t.Errorf("%s: %v", path, found)
					}
				}
			}
		}
	}
	if _, total := ids(t, all.Do("GET", "/api/v1/books?sort=release_date", nil)); total != 6 {
		t.Errorf("others have %d books, want 6", total)
	}
	if got, total := ids(t, me.Do("GET", "/api/v1/books?seriesId="+hidden.String()+"&sort=release_date", nil)); len(got) != 0 || total != 0 {
		t.Errorf("%d of %d books of a hidden series", len(got), total)
	}
}
