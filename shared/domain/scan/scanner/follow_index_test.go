package scanner_test

import (
	"fmt"
	"testing"
)

// Books that follow their files have the files' pages, and are read again if the file is not exactly the same.
func TestPagesOfBooksThatFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, gen_random_uuid(), $2, n, n, n, n, n from unnest('{Old,New}'::text[]) n`, r.tenant, r.library)
	r.exec(`insert into book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, title, title_sort, search_title, fingerprint, analyzed, deleted_at, created_at, first_read_at)
		select $1, gen_random_uuid(), $2, s.id, s.path || '/' || n, 10, case when n % 4 = 0 then s.path else 'same' end, now(), 'cbz', 'b', 'b', s.path, 'f' || n, true,
		  case when s.path = 'Old' then now() end, x.at, x.at
		from series s cross join lateral (select case when s.path = 'Old' then now() - interval '1 day' else now() end as at) x, generate_series(1, 12) n`, r.tenant, r.library)
	r.exec(`insert into page_index (tenant_id, book_id, revision, file_size, file_etag, file_modified, names, types, offsets, lengths, packed, sizes, methods, crcs, widths, heights)
		select tenant_id, id, revision, 10, etag, now(), array[key], '{image/png}', '{1}', '{1}', '{1}', '{1}', '{1}', '{1}', '{1}', '{1}' from book where key <> 'New/3'`)
	was := values[string](r, "select id || ' ' || split_part(key, '/', 2) from book where tenant_id = app.tenant() and deleted_at is not null")
	again := values[string](r, `select again from app.follow_content($1, null, array(select id from book where tenant_id = app.tenant() and deleted_at is not null),
		array(select id from book where tenant_id = app.tenant() and deleted_at is null), null) where again is not null`, r.library)
	same(t, "read again are", again, []string{"New/4", "New/8", "New/12"})
	var want []string
	for _, w := range was {
		n, of := w[37:], "its own revision"
		switch n {
		case "3":
			continue
		case "4", "8", "12":
			of = "none"
		}
		want = append(want, fmt.Sprintf("%s New/%s New/%s %s", w[:36], n, n, of))
	}
	same(t, "pages", values[string](r, `select concat_ws(' ', b.id, b.key, x.names[1], case x.revision when b.revision then 'its own revision' when -1 then 'none' end)
		from page_index x join book b on b.tenant_id = x.tenant_id and b.id = x.book_id where x.tenant_id = app.tenant()`), want)
}
