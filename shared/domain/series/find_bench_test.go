package series_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// A word in very many alternate titles: go test -run xxx -bench OtherTitles -benchtime 5x ./shared/domain/series
func BenchmarkOtherTitles(b *testing.B) {
	for _, titles := range []int{20_000, 200_000} {
		s := testkit.Serve(b, routes)
		me := s.User(b, "one", "reader")
		library := uuid.New()
		s.DB.Exec(b, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, 'l', '/l', 'b', 'l/', 'series_volume', 'filename', 'file_order')`, s.One, library)
		s.DB.Exec(b, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, book_count)
			select $1, gen_random_uuid(), $2, 'p' || n, 'Series ' || n, 'Series ' || n, 'Series ' || n, 'series ' || n, 1 from generate_series(1, $3::integer / 4) n`, s.One, library, titles)
		began := time.Now()
		s.DB.Exec(b, `insert into alternate_title (tenant_id, id, series_id, label, title)
			select s.tenant_id, gen_random_uuid(), s.id, 'l' || n, 'Légende of ' || s.title || ' part ' || n from series s, generate_series(1, 4) n where s.tenant_id = $1`, s.One)
		b.Logf("%d titles are written in %s", titles, time.Since(began).Round(time.Millisecond))
		s.DB.Exec(b, "vacuum analyze")
		for name, query := range map[string]string{"in all": "legende", "in few": "legende 77", "fuzzy": "legend 4711"} {
			s.DB.Exec(b, "delete from setting")
			if name == "fuzzy" {
				s.DB.Exec(b, "insert into setting (tenant_id, key, value) values ($1, 'search.fuzzy.enabled', 'true')", s.One)
			}
			b.Run(fmt.Sprintf("%d/%s", titles, name), func(b *testing.B) {
				for b.Loop() {
					me.Do("POST", "/api/v1/series/search", `{"query":"`+query+`"}`).Want(200)
				}
			})
		}
	}
}
