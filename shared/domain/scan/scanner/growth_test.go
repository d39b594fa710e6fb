package scanner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// A first scan is over before autovacuum runs, so it gathers statistics itself. Without them Postgres reads 1,240 rows
// per book; with them 250.
func TestScanOfNewLibraryHasStatistics(t *testing.T) {
	t.Parallel()
	const books, most = 2000, 500
	r := newRig(t)
	comic := testkit.Comic(t, 1, 1, "")
	r.shelved(books, func(i int) []byte { return append(comic, make([]byte, i%100)...) })
	n := float64(r.rowsRead()) / books
	t.Logf("%.0f rows for each", n)
	if n == 0 || n > most {
		t.Errorf("%.0f rows are read for each of %d books, want at most %d", n, books, most)
	}
	if without := values[string](r, "select relname from pg_stat_user_tables where relname in ('book', 'series', 'task') and analyze_count = 0"); len(without) > 0 {
		t.Errorf("nothing is known of %v", without)
	}
}

// The new place of a moved book is found by content, not among all books of its size, which here are all books: it
// reads 450 rows per book, 650 in smaller batches on a busy machine, instead of 2,470.
func TestMovedBooksAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	const books, moved, others, most = 400, 200, 40_000, 1200
	r := newRig(t)
	r.shelved(books, func(i int) []byte {
		comic := testkit.Comic(t, i, 1, "")
		return append(comic, make([]byte, 32<<10-len(comic))...) // the same size as all others
	})
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, fingerprint, analyzed, seen_at, created_at)
		select tenant_id, gen_random_uuid(), library_id, id, 'Series 999/' || n, size, now(), 'cbz', 't', 't', 't', md5(n::text), true, now() + interval '1 day', now() - interval '1 day'
		from (select s.*, k.size from series s join book k on k.series_id = s.id order by s.path desc limit 1) s, generate_series(1, $1::integer) n`, others) // in a series that stays
	r.exec("insert into book_metadata (tenant_id, book_id) select tenant_id, id from book on conflict do nothing")
	r.exec("analyze")
	for i := range moved / perSeries {
		r.rename(fmt.Sprintf("Series %03d", i), fmt.Sprintf("Moved %03d", i))
	}
	before := r.rowsRead()
	if res := r.scan("normal"); res.Moved != moved {
		t.Fatalf("scan: %+v", res)
	}
	n := float64(r.rowsRead()-before) / moved
	t.Logf("%.0f rows for each", n)
	if n == 0 || n > most {
		t.Errorf("%.0f rows are read for each of %d moved books, want at most %d", n, moved, most)
	}
}

const perSeries = 20

// shelved scans a library of that many books, without statistics from elsewhere.
func (r *rig) shelved(books int, comic func(i int) []byte) {
	for _, table := range []string{"book", "series", "page_index", "book_metadata", "library_count", "task", "scan"} {
		r.exec("alter table " + table + " set (autovacuum_enabled = false)")
	}
	t := r.t
	for i := range books {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Series %03d/%04d.cbz", i/perSeries, i), comic(i))
	}
	if res := r.scan("normal"); res.Status != "completed" || res.Created != int64(books) {
		t.Fatalf("scan of %d books: %+v", books, res)
	}
}

// rowsRead returns how many rows Postgres has read so far.
func (r *rig) rowsRead() (total int64) {
	t, ctx, owner := r.t, context.Background(), r.db.Owner.Pool()
	for _, p := range []*db.DB{r.db.App, r.db.System, r.db.Owner} { // a connection reports its counts when it ends
		p.Pool().Reset()
	}
	testkit.Eventually(t, stuck, func() bool {
		var others int
		if err := owner.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`).Scan(&others); err != nil {
			t.Fatal(err)
		}
		return others == 0
	})
	if err := owner.QueryRow(ctx, "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) from pg_stat_user_tables where schemaname = 'public'").Scan(&total); err != nil {
		t.Fatal(err)
	}
	return total
}
