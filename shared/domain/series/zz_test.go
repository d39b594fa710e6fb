package series_test
import ("testing";"context";"time";"fmt";"sort";"os";"github.com/jackc/pgx/v5";"github.com/longbox/longbox/shared/domain/series";"github.com/longbox/longbox/shared/testkit")
func TestZZ(t *testing.T) {
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	library, series_ := s.Crowd(t, s.One, me.ID)
	_ = series_
	for i := 0; i < 4; i++ {
	_, err := s.DB.Owner.Pool().Exec(context.Background(), "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, year) select tenant_id, gen_random_uuid(), library_id, path||'x'||$2::int, name, title||'x', title_sort||'x'||$2::int, search_title, year from series where tenant_id = $1", s.One, i)
	if err != nil { t.Fatal(err) }
	}
	_, err := s.DB.Owner.Pool().Exec(context.Background(), "insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, number, volume, page_count, analyzed, created_at) select s.tenant_id, gen_random_uuid(), s.library_id, s.id, s.path || '/' || n, n * 1000, now(), 'cbz', s.title || ' ' || n, s.title || ' ' || n, lower(s.title), n, n, 20 + n, true, now() - random() * interval '300 days' from series s, generate_series(11, 20) n where s.tenant_id = $1", s.One)
	if err != nil { t.Fatal(err) }
	s.DB.Owner.Pool().Exec(context.Background(), "vacuum analyze")
	var nb, ns, np int
	s.DB.Owner.Pool().QueryRow(context.Background(), "select (select count(*) from book where tenant_id=$1), (select count(*) from series where tenant_id=$1), (select count(*) from progress where account_id=$2)", s.One, me.ID).Scan(&nb,&ns,&np)
	out, _ := os.Create("/tmp/zz_series.txt")
	fmt.Fprintln(out, "books", nb, "series", ns, "progress", np)
	type r struct{n string; d time.Duration}
	var all []r
	pgx.BeginFunc(context.Background(), s.DB.App.Pool(), func(tx pgx.Tx) error {
		tx.Exec(context.Background(), "select set_config('app.tenant', $1, true), set_config('app.account', $2, true)", me.Tenant.String(), me.ID.String())
		for _, q := range series.Statements(library) {
			best := time.Hour
			for i := 0; i < 4; i++ {
				st := time.Now()
				rows, err := tx.Query(context.Background(), q.SQL, q.Args...); if err != nil { t.Fatal(err) }
				for rows.Next() {}
				rows.Close()
				if err := rows.Err(); err != nil { t.Fatal(q.Name, err) }
				best = min(best, time.Since(st))
			}
			all = append(all, r{q.Name, best})
		}
		return nil
	})
	sort.Slice(all, func(i, j int) bool { return all[i].d > all[j].d })
	for _, x := range all { fmt.Fprintln(out, x.d, x.n) }
}
