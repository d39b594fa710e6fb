package testkit

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Crowd fills the database for plan tests: 20,000 books in 2,000 series and two libraries of tenant, and as many in two
// other tenants. reader and ten others have started or completed every 20th book.
func (s *Server) Crowd(t testing.TB, tenant, reader uuid.UUID) (library, series uuid.UUID) {
	t.Helper()
	for _, c := range []struct {
		tenant uuid.UUID
		series int
	}{{tenant, 2000}, {s.DB.Tenant(t, "crowd-a"), 1000}, {s.DB.Tenant(t, "crowd-b"), 1000}} {
		for _, sql := range []string{
			`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			 select $1, gen_random_uuid(), 'library ' || n, '/l' || n, 'b', n || '/', 'series_volume', 'filename', 'file_order'
			 from generate_series(1, 2) n where $2::integer > 0`,
			`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, year)
			 select $1, gen_random_uuid(), l.id, l.name || n, 'Series ' || n, 'Series ' || n, 'Series ' || n, 'series ' || n, 1950 + n % 70
			 from generate_series(1, $2::integer / 2) n, library l where l.tenant_id = $1`,
			`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, number,
			   volume, page_count, analyzed, created_at)
			 select s.tenant_id, gen_random_uuid(), s.library_id, s.id, s.path || '/' || n, n * 1000, now(), 'cbz', s.title || ' ' || n, s.title || ' ' || n,
			   lower(s.title), n, n, 20 + n, true, now() - random() * interval '300 days'
			 from series s, generate_series(1, 10) n where s.tenant_id = $1 and $2::integer > 0`,
			`insert into book_metadata (tenant_id, book_id, metadata) select tenant_id, id, '{"summary":"s"}' from book
			 where tenant_id = $1 and $2::integer > 0`,
		} {
			if _, err := s.DB.Owner.Pool().Exec(context.Background(), sql, c.tenant, c.series); err != nil {
				t.Fatalf("fill: %v", err)
			}
		}
	}
	ctx := context.Background()
	if _, err := s.DB.Owner.Pool().Exec(ctx, `insert into account (tenant_id, id, username, email, password_hash, role)
		select $1, gen_random_uuid(), 'crowd' || n, 'crowd' || n, '', 'reader' from generate_series(1, 10) n`, tenant); err != nil {
		t.Fatalf("fill: %v", err)
	}
	if _, err := s.DB.Owner.Pool().Exec(ctx, `insert into progress (tenant_id, account_id, book_id, id, current_page, completed, updated_at)
		select b.tenant_id, a.id, b.id, gen_random_uuid(), 1, nth % 200 <> 0, b.created_at
		from (select tenant_id, id, created_at, row_number() over (order by id) as nth from book where tenant_id = $1) b
		join account a on a.tenant_id = b.tenant_id and (a.id = $2 or a.username like 'crowd%') where nth % 20 = 0`, tenant, reader); err != nil {
		t.Fatalf("fill: %v", err)
	}
	if _, err := s.DB.Owner.Pool().Exec(ctx, "vacuum analyze"); err != nil {
		t.Fatalf("fill: %v", err)
	}
	if err := s.DB.Owner.Pool().QueryRow(ctx, "select library_id, id from series where tenant_id = $1 limit 1", tenant).Scan(&library, &series); err != nil {
		t.Fatalf("fill: %v", err)
	}
	return library, series
}

// Scans returns the tables that the query, run as the caller, reads from end to end, and the plan as JSON.
func (s *Server) Scans(t testing.TB, c *Client, sql string, args ...any) (tables []string, plan string) {
	t.Helper()
	return s.ScansAfter(t, c, "select", sql, args...)
}

// ScansAfter is Scans for a query that another statement precedes in its transaction, such as a setting of the planner.
func (s *Server) ScansAfter(t testing.TB, c *Client, first, sql string, args ...any) (tables []string, plan string) {
	t.Helper()
	var nodes []struct {
		Plan json.RawMessage
	}
	err := pgx.BeginFunc(context.Background(), s.DB.App.Pool(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "select set_config('app.tenant', $1, true), set_config('app.account', $2, true)",
			c.Tenant.String(), c.ID.String()); err != nil {
			return err
		}
		if _, err := tx.Exec(context.Background(), first); err != nil {
			return err
		}
		return tx.QueryRow(context.Background(), "explain (format json) "+sql, args...).Scan(&plan)
	})
	if err != nil {
		t.Fatalf("explain %s: %v", sql, err)
	}
	if err := json.Unmarshal([]byte(plan), &nodes); err != nil {
		t.Fatal(err)
	}
	return seqScans(t, nodes[0].Plan), plan
}

func seqScans(t testing.TB, raw json.RawMessage) (tables []string) {
	t.Helper()
	var node struct {
		Type     string            `json:"Node Type"`
		Relation string            `json:"Relation Name"`
		Plans    []json.RawMessage `json:"Plans"`
	}
	if err := json.Unmarshal(raw, &node); err != nil {
		t.Fatal(err)
	}
	if node.Type == "Seq Scan" {
		tables = append(tables, node.Relation)
	}
	for _, p := range node.Plans {
		tables = append(tables, seqScans(t, p)...)
	}
	return tables
}
