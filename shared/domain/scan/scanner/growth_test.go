package scanner_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// A first scan is over before autovacuum looks: it gathers statistics itself. Without, Postgres reads 1,250 rows for
// each of these books, with them 250.
func TestScanOfNewLibraryHasStatistics(t *testing.T) {
	t.Parallel()
	const books, most = 2000, 500
	total := 0.0
	for _, n := range rowsRead(t, books) {
		total += n
	}
	if total == 0 || total > most {
		t.Errorf("%.0f rows are read for each of %d books, want at most %d", total, books, most)
	}
}

// rowsRead scans a library of so many books, 20 to a series, and tells how many rows of each table Postgres looked at for
// each of them.
func rowsRead(t *testing.T, books int) map[string]float64 {
	r := newRig(t)
	ctx, owner := context.Background(), r.db.Owner.Pool()
	for _, table := range []string{"book", "series", "page_index", "book_metadata", "library_count", "task", "scan"} {
		if _, err := owner.Exec(ctx, "alter table "+table+" set (autovacuum_enabled = false)"); err != nil {
			t.Fatal(err)
		}
	}
	data := testkit.Comic(t, 1, 1, "")
	for i := range books {
		testkit.WriteFile(t, r.folder, fmt.Sprintf("Series %03d/%04d.cbz", i/20, i), append(data, make([]byte, i%100)...))
	}
	if res := r.scan("normal"); res.Status != "completed" || res.Created != int64(books) {
		t.Fatalf("scan of %d books: %+v", books, res)
	}
	// A connection tells what it has counted when it ends.
	r.db.App.Pool().Reset()
	r.db.System.Pool().Reset()
	counted := map[string]float64{}
	testkit.Eventually(t, stuck, func() bool {
		var others int
		if err := owner.QueryRow(ctx, `select count(*) from pg_stat_activity where datname = current_database() and usename <> current_user`).Scan(&others); err != nil {
			t.Fatal(err)
		}
		return others == 0
	})
	rows, err := owner.Query(ctx, "select relname, (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 / $1 from pg_stat_user_tables where schemaname = 'public'", books)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var n float64
		if err := rows.Scan(&table, &n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			counted[table] = n
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	t.Logf("%d books: %v", books, counted)
	return counted
}
