package collection_test

import (
	"context"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/collection"
	"github.com/longbox/longbox/shared/testkit"
)

// The lists do not look up each series or book of each list.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, collection.Routes)
	me := s.User(t, "one", "reader")
	s.Crowd(t, s.One, me.ID)
	for _, sql := range []string{
		"insert into collection (tenant_id, id, kind, name) select $1, gen_random_uuid(), kind, kind || n from unnest(array['series', 'books']) kind, generate_series(1, 20) n",
		`insert into collection_member (tenant_id, id, collection_id, series_id, place)
		 select $1, gen_random_uuid(), c.id, x.id, 1 from collection c, (select id from series where tenant_id = $1 limit 500) x where c.kind = 'series'`,
		`insert into collection_member (tenant_id, id, collection_id, book_id, place)
		 select $1, gen_random_uuid(), c.id, x.id, 1 from collection c, (select id from book where tenant_id = $1 limit 500) x where c.kind = 'books'`,
	} {
		s.DB.Exec(t, sql, s.One)
	}
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), "vacuum analyze"); err != nil {
		t.Fatal(err)
	}
	for sql, books := range map[string]int{collection.CollectionsSQL: 0, collection.ReadListsSQL: 1} {
		scanned, plan := s.Scans(t, me, sql, 50, 0)
		if n := strings.Count(plan, `"Relation Name": "book"`); n != books || books > 0 && !strings.Contains(plan, "CTE gone") ||
			strings.Contains(plan, `"Relation Name": "series"`) {
			t.Errorf("%s looks up members, and scans %v: %s", sql, scanned, plan)
		}
	}
}
