package scanner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// At the tenant's limit a scan adds no more and says so; what is there is still changed, and taken in when there is room.
func TestBookQuota(t *testing.T) {
	r := newRig(t)
	limit := func(n int) {
		if _, err := r.db.Owner.Pool().Exec(context.Background(), "update tenant set max_books = $2 where id = $1", r.tenant, n); err != nil {
			t.Fatal(err)
		}
	}
	books := func() int64 {
		return values[int64](r, "select count(*) from book where tenant_id = app.tenant() and deleted_at is null")[0]
	}
	for i := range 5 {
		testkit.WriteFile(t, r.folder, "S"+string(rune('0'+i))+"/a.cbz", testkit.Comic(t, i, 1, ""))
	}
	limit(3)
	res := r.scan("normal")
	if res.Status != "completed" || books() != 3 || res.Created != 3 || res.Series != 3 || res.Errors != 2 || len(res.Texts) != 1 ||
		!strings.Contains(res.Texts[0], "The limit of 3 books") {
		t.Errorf("at the limit: %d books, %+v", books(), res)
	}
	limit(1)                                                                                     // removes nothing and keeps nothing from being changed
	added := values[string](r, "select key from book where tenant_id = app.tenant() limit 1")[0] // which three is not said
	testkit.WriteFile(t, r.folder, added, testkit.Comic(t, 9, 2, ""))
	if res = r.scan("normal"); res.Status != "completed" || books() != 3 || res.Updated != 1 || res.Created != 0 {
		t.Errorf("below: %d books, %+v", books(), res)
	}
	limit(5)
	if res = r.scan("normal"); res.Status != "completed" || books() != 5 || res.Errors != 0 {
		t.Errorf("with room: %d books, %+v", books(), res)
	}
}
