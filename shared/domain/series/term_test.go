package series_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// The lists have what series have, with how many of them.
func TestTerms(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me, foreign := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	library := newLibrary(t, s, s.One, "comics")
	newSeries(t, s, s.One, library, "A", 1, 1)
	newSeries(t, s, s.One, library, "B", 2, 1)
	for kind, path := range map[string]string{"genre": "/api/v1/genres", "tag": "/api/v1/tags"} {
		for name, of := range map[string][]string{"space": {"A", "B"}, "Drama": {"A"}, "unused": nil} {
			id := uuid.New()
			exec(t, s, "insert into "+kind+" (tenant_id, id, name) values ($1, $2, $3)", s.One, id, name)
			exec(t, s, fmt.Sprintf("insert into series_%[1]s (tenant_id, series_id, %[1]s_id) select tenant_id, id, $1 from series where title = any($2)", kind), id, of)
		}
		read := func(c *testkit.Client, query string) (out string) {
			t.Helper()
			var page struct {
				Data []struct {
					Name        string
					SeriesCount int
				}
				Total int
			}
			c.Do("GET", path+query, nil).Want(200).JSON(&page)
			for _, d := range page.Data {
				out += fmt.Sprintf("%s %d, ", d.Name, d.SeriesCount)
			}
			return out + fmt.Sprint("of ", page.Total)
		}
		for query, want := range map[string]string{"": "Drama 1, space 2, of 2", "?pageSize=1&page=2": "space 2, of 2"} {
			if got := read(me, query); got != want {
				t.Errorf("%s%s: %s, want %s", path, query, got, want)
			}
		}
		if got := read(foreign, ""); got != "of 0" {
			t.Errorf("another tenant's %s: %s", path, got)
		}
	}
}
