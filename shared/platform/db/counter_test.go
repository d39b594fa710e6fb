package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// TestCountersStayLinear updates many books at once: the triggers that keep the counters must not compare every
// row with every other.
func TestCountersStayLinear(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	tenant, library := d.Tenant(t, "one"), uuid.New()
	ctx := context.Background()
	exec := func(sql string, args ...any) time.Duration {
		t.Helper()
		started := time.Now()
		if _, err := d.Owner.Pool().Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return time.Since(started)
	}
	exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2, 'L', '/l', 'l', '', 'series_volume', 'filename', 'file_order')`, tenant, library)
	exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, 's' || n, 's', 's', 's', 's' from generate_series(1, 100) n`, tenant, library)
	exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, s.id, s.path || '/' || n, 10, now(), 'cbz', 't', 't', 't'
		from series s cross join generate_series(1, 100) n where s.tenant_id = $1`, tenant, library)
	exec("update book set number = 1 where key like 's1/1%'") // a small one first: its plan is remembered
	took := exec("update book set page_count = 3 where tenant_id = $1", tenant)
	if took > 10*time.Second { // quadratic it is minutes
		t.Errorf("10,000 rows took %s", took)
	}
	exec("update book set deleted_at = now() where tenant_id = $1 and key like '%/1'", tenant)
	var books, bytes, pages, inSeries int64
	if err := d.Owner.Pool().QueryRow(ctx, `select c.books, c.bytes, c.pages, (select sum(book_count)::bigint from series where tenant_id = $1)
		from library_count c where c.tenant_id = $1`, tenant).Scan(&books, &bytes, &pages, &inSeries); err != nil {
		t.Fatal(err)
	}
	if books != 9900 || bytes != 99000 || pages != 29700 || inSeries != 9900 {
		t.Errorf("counters: %d books, %d bytes, %d pages, %d in series", books, bytes, pages, inSeries)
	}
}
