package e2e_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// whole lists the operations that delete things of series, including those of hidden series.
var whole = []string{"deleteGenre", "deleteTag", "deleteSharingTag", "deleteCollection", "deleteReadList", "forgetAll"}

// A user from whom a series is hidden does not find the series or its books, whatever the operation: it returns 404 as
// for unknown ids, no response contains anything of them, and none of their rows change.
func TestMatrixHidden(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"allow", "admin"}, {"deny", "admin"}, {"deny", "maintainer"}, {"allow", "reader"}} {
		mode, role := c[0], c[1]
		t.Run(mode+" "+role, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t)
			c := m.as(role)
			may := func(op *httpapi.Op) bool { return holds(auth.RolePermissions(role))(op, 200) == 200 }
			m.exec("update series set title = 'Verborgene Reihe', title_sort = 'verborgene reihe', search_title = 'verborgene reihe' where tenant_id = $1", m.One)
			m.exec("update book set title = 'Verborgenes Buch', search_title = 'verborgenes buch' where tenant_id = $1", m.One)
			names := map[string]string{}
			for _, op := range m.all() {
				if e := operations[op.ID]; e.name != nil {
					names[op.ID] = e.name(m, c)
				}
			}
			m.exec(`insert into task (tenant_id, id, type, status, library_id, params, result, last_error) select $1, gen_random_uuid(), 'analyze_books', 'failed', $2,
				jsonb_build_object('keys', jsonb_build_array('Geheim/Geheim 1.cbz')), jsonb_build_object('changes', jsonb_build_array($3::text)), 'Geheim 1.cbz is damaged'
				from generate_series(1, 2)`, m.One, m.book.LibraryID, m.book.SeriesID.String())
			m.exec(`insert into task_metric (tenant_id, type, hour, succeeded, failed, retried, timed, duration_ms, durations, waited, wait_ms, last_error, last_error_at)
				values ($1, 'analyze_book', date_trunc('hour', now()), 0, 1, 0, 0, 0, array_fill(0, array[96]), 0, 0, 'Geheim 1.cbz is damaged', now())
				on conflict (tenant_id, hour, type) do update set last_error = excluded.last_error, last_error_at = excluded.last_error_at`, m.One)
			m.exec("update scan set errors = '{Verborgenes.cbz is damaged}', error_count = 1 where tenant_id = $1", m.One)
			genre, tag := uuid.New(), uuid.New()
			m.exec("insert into genre (tenant_id, id, name) values ($1, $2, 'Verborgenes Genre')", m.One, genre)
			m.exec("insert into series_genre (tenant_id, series_id, genre_id) values ($1, $2, $3)", m.One, m.book.SeriesID, genre)
			m.exec("insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'for some')", m.One, tag)
			if mode == "deny" {
				m.exec("insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", m.One, m.book.SeriesID, tag)
			}
			m.exec("insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, $4)", m.One, tag, c.ID, mode)

			secrets := []string{"Verborgen", "verborgen", "Geheim 1.cbz", "Geheim%201.cbz", m.book.ID.String(), m.book.SeriesID.String()}
			before := m.hidden(t)
			for _, op := range m.all() {
				if slices.Contains(whole, op.ID) {
					continue
				}
				e, name := operations[op.ID], names[op.ID]
				r := m.callNamed(op, e, c, name)
				if may(op) && op.SeesAll && r.Status != 403 {
					t.Errorf("%s: status %d, want 403: %.300s", op.ID, r.Status, r.Body)
				}
				about := !op.SeesAll && slices.ContainsFunc(secrets, func(s string) bool { return name != "" && bytes.HasPrefix([]byte(name), []byte(s)) })
				if about {
					unknown := m.callNamed(op, e, c, uuid.NewString())
					if unknown.Status != r.Status || !bytes.Equal(unknown.Body, r.Body) || r.Status != 404 && r.Status != 204 && (r.Status != 403 || may(op)) {
						t.Errorf("%s: what is hidden (%d %.300s) is told from what is not there (%d %.300s)", op.ID, r.Status, r.Body, unknown.Status, unknown.Body)
					}
				}
				if r.Status >= 500 {
					t.Errorf("%s: status %d: %.300s", op.ID, r.Status, r.Body)
				}
				for _, s := range secrets {
					if bytes.Contains(r.Body, []byte(s)) {
						t.Errorf("%s tells of %q: %.600s", op.ID, s, r.Body)
					}
				}
			}
			var inventory struct {
				Libraries []struct {
					ID                                uuid.UUID
					SeriesCount, BookCount, TotalSize int
				}
			}
			c.Do("GET", "/api/v1/metrics/inventory", nil).Want(200).JSON(&inventory)
			for _, l := range inventory.Libraries {
				if l.ID == m.book.LibraryID && l.SeriesCount+l.BookCount+l.TotalSize != 0 {
					t.Errorf("counted: %+v", l)
				}
			}
			for table, rows := range m.hidden(t) {
				if before[table] != rows {
					t.Errorf("rows of %s that are hidden were changed: %s, before %s", table, rows, before[table])
				}
			}
		})
	}
}

// hidden returns a fingerprint of the rows of the series and its book, by table.
func (m *matrix) hidden(t *testing.T) map[string]string {
	t.Helper()
	ctx, pool := context.Background(), m.DB.Owner.Pool()
	rows, err := pool.Query(ctx, `select c.relname::text, case when c.relname = 'series' then 'id' else a.attname::text end from pg_class c
		join pg_attribute a on a.attrelid = c.oid and (a.attname in ('series_id', 'book_id') or c.relname = 'series' and a.attname = 'id')
		where c.relkind in ('r', 'p') and not a.attisdropped`)
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{}
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		columns[table] = column
	}
	if rows.Err() != nil || len(columns) < 20 {
		t.Fatalf("tables: %v, %v", columns, rows.Err())
	}
	out := map[string]string{}
	for table, column := range columns {
		var sum string
		if err := pool.QueryRow(ctx, "select count(*) || ' ' || coalesce(md5(string_agg(r::text, '' order by r::text)), '') from "+table+" r where "+column+" in ($1, $2)",
			m.book.ID, m.book.SeriesID).Scan(&sum); err != nil {
			t.Fatal(err)
		}
		out[table] = sum
	}
	return out
}
