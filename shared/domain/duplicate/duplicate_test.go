package duplicate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func TestDuplicates(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) { duplicate.Routes(a, d, nil) })
	c, other := s.User(t, "one", auth.Maintainer), s.User(t, "two", auth.Admin)
	exec := func(sql string, args ...any) {
		t.Helper()
		s.DB.Exec(t, sql, args...)
	}
	books := map[string]string{}
	add := func(tenant, library uuid.UUID, key, print string) {
		t.Helper()
		id := uuid.New()
		books[key] = id.String()
		exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, fingerprint, title, title_sort, search_title)
			values ($1, $2, $3, $3, $4, 1, now(), 'cbz', $5, $4, $4, $4)`, tenant, id, library, key, print)
	}
	var libraries []uuid.UUID
	for _, tenant := range []uuid.UUID{c.Tenant, c.Tenant, other.Tenant} {
		library := uuid.New()
		libraries = append(libraries, library)
		exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, $3, 's3://b', 'b', '', 'series_volume', 'filename', 'file_order')`, tenant, library, library.String())
		exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $2, 'S', 'S', 'S', 'S', 's')`, tenant, library)
	}
	for key, print := range map[string]string{"a1": "A", "a2": "A", "b1": "B", "b2": "B", "single": "C", "unread 1": "", "unread 2": ""} {
		add(c.Tenant, libraries[0], key, print)
	}
	add(c.Tenant, libraries[1], "a3", "A") // in another library
	add(other.Tenant, libraries[2], "c2", "C")

	type group struct {
		ID, FileHash   string
		BookIDs        []string
		DuplicateCount int
	}
	groups := func() map[string]group {
		t.Helper()
		var page struct {
			Data  []group
			Total int
		}
		c.Do("GET", "/api/v1/duplicates", nil).Want(200).JSON(&page)
		out := map[string]group{}
		for _, g := range page.Data {
			if page.Total != len(page.Data) || g.DuplicateCount != len(g.BookIDs) {
				t.Errorf("%+v", page)
			}
			out[g.FileHash] = g
		}
		return out
	}
	find := func() duplicate.Result {
		t.Helper()
		res, err := (&duplicate.Finder{Database: s.DB.App}).Find(s.In(c.Tenant), task.Held{})
		if err != nil {
			t.Fatal(err)
		}
		return res.(duplicate.Result)
	}
	first := c.Do("POST", "/api/v1/duplicates/scan", nil).Want(200).Map()
	if first["taskId"] == nil {
		t.Errorf("%v", first)
	}
	c.Do("POST", "/api/v1/duplicates/scan", nil).Want(409)
	s.User(t, "one", auth.Reader).Do("POST", "/api/v1/duplicates/scan", nil).Want(403)
	if res := find(); res.Found != 2 {
		t.Errorf("%+v", res)
	}
	got := groups()
	want := []string{books["a1"], books["a2"], books["a3"]}
	slices.Sort(want)
	if len(got) != 2 || !slices.Equal(got["A"].BookIDs, want) {
		t.Fatalf("%+v", got)
	}
	totals := func(c *testkit.Client, groups, books float64) {
		t.Helper()
		if m := c.Do("GET", "/api/v1/duplicates?pageSize=1", nil).Want(200).Map(); m["totalGroups"] != groups || m["totalDuplicateBooks"] != books || m["total"] != groups {
			t.Errorf("%v, want %v groups with %v books", m, groups, books)
		}
	}
	totals(c, 2, 5)
	totals(other, 0, 0)
	exec("update duplicate set created_at = now() - interval '1 day' where fingerprint = 'B'")
	for page, fingerprint := range []string{"B", "A"} { // oldest first
		m := c.Do("GET", fmt.Sprint("/api/v1/duplicates?pageSize=1&page=", page+1), nil).Want(200).Map()
		if data := m["data"].([]any); m["total"] != 2.0 || len(data) != 1 || data[0].(map[string]any)["fileHash"] != fingerprint {
			t.Errorf("page %d: %v", page+1, m)
		}
	}
	other.Do("DELETE", "/api/v1/duplicates/"+got["A"].ID, nil).Want(404)
	limited, tag := s.User(t, "one", auth.Admin), uuid.New() // who does not see every book
	exec("insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'x')", c.Tenant, tag)
	exec("insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", c.Tenant, tag, limited.ID)
	exec("insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", c.Tenant, libraries[1], tag) // the series of a3
	totals(limited, 2, 4)
	totals(c, 2, 5)
	limited.Do("DELETE", "/api/v1/duplicates/"+got["A"].ID, nil).Want(403)
	limited.Do("DELETE", "/api/v1/duplicates/series/"+got["A"].ID, nil).Want(403)
	s.User(t, "one", auth.Reader).Do("DELETE", "/api/v1/duplicates/"+got["A"].ID, nil).Want(403)
	c.Do("DELETE", "/api/v1/duplicates/"+got["A"].ID, nil).Want(204)
	c.Do("DELETE", "/api/v1/duplicates/"+got["A"].ID, nil).Want(404) // it no longer exists
	totals(c, 1, 2)
	totals(limited, 1, 2) // dismissed also for who does not see all of it
	if find(); len(groups()) != 1 {
		t.Error("the dismissed group came back")
	}
	// A member goes: the members are no longer the dismissed ones. The second group has only one left.
	exec("update book set deleted_at = now() where key in ('a3', 'b1')")
	if g := groups(); len(g) != 1 || len(g["A"].BookIDs) != 2 || g["A"].ID != got["A"].ID {
		t.Errorf("%+v", g)
	}
	totals(c, 1, 2)
	if res := find(); res.Removed != 1 || res.Found != 0 {
		t.Errorf("%+v", res)
	}
	c.Do("DELETE", "/api/v1/duplicates/"+got["A"].ID, nil).Want(204)
	exec("update book set deleted_at = now() where key = 'a2'")
	find() // a dismissal is kept while one is left
	exec("update book set deleted_at = null where key = 'a2'")
	if find(); len(groups()) != 0 {
		t.Errorf("dismissed, and one of two was away: %+v", groups())
	}
	exec("update duplicate set dismissed = (select array_agg(id order by id) from book where fingerprint = 'A') where fingerprint = 'A'")
	exec("update book set deleted_at = null")
	if find(); len(groups()) != 1 || groups()["B"].ID == "" {
		t.Errorf("as it was dismissed: %+v", groups())
	}
}
