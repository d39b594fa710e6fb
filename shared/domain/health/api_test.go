package health_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/health"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

func exec(t *testing.T, s *testkit.Server, sql string, args ...any) {
	t.Helper()
	s.DB.Exec(t, sql, args...)
}

func TestInventory(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, health.Routes)
	reader := s.User(t, "one", "reader")
	m := reader.Do("GET", "/api/v1/metrics", nil).Want(200).Map()
	if m["libraryCount"] != 0.0 || m["bookCount"] != 0.0 || m["userCount"] != 1.0 || len(m["libraries"].([]any)) != 0 {
		t.Errorf("empty: %v", m)
	}
	for _, name := range []string{"b", "A"} {
		lib, series := uuid.New(), uuid.New()
		exec(t, s, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, $3, '/c', 'c', '', 'series_volume', 'filename', 'file_order')`, s.One, lib, name)
		exec(t, s, "insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')", s.One, series, lib)
		for i, deleted := range []bool{false, false, true} {
			exec(t, s, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, page_count, deleted_at)
				values ($1, $2, $3, $4, $5, 100, now(), 'CBZ', 'b', 'b', 'b', 10, case when $6 then now() end)`,
				s.One, uuid.New(), lib, series, string(rune('a'+i)), deleted)
		}
	}
	for _, path := range []string{"/api/v1/metrics", "/api/v1/metrics/inventory"} {
		m = reader.Do("GET", path, nil).Want(200).Map()
		if m["libraryCount"] != 2.0 || m["seriesCount"] != 2.0 || m["bookCount"] != 4.0 || m["pageCount"] != 40.0 || m["totalBookSize"] != 400.0 {
			t.Errorf("%v", m)
		}
		first := m["libraries"].([]any)[0].(map[string]any)
		if first["name"] != "A" || first["seriesCount"] != 1.0 || first["bookCount"] != 2.0 || first["totalSize"] != 200.0 {
			t.Errorf("%v", first)
		}
	}
	if size, shown := m["databaseSize"]; size != nil || !shown {
		t.Errorf("a shared database tells its size: %v", size)
	}
	m = s.User(t, "two", "reader").Do("GET", "/api/v1/metrics", nil).Want(200).Map()
	if m["libraryCount"] != 0.0 || m["bookCount"] != 0.0 || m["userCount"] != 1.0 {
		t.Errorf("another tenant's inventory: %v", m)
	}
}

func TestOwnDatabase(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, health.Routes)
	exec(t, s, "update tenant set name = 'default' where name = 'one'")
	c := s.User(t, "one", "reader")
	if m := c.Do("GET", "/api/v1/metrics", nil).Want(200).Map(); m["databaseSize"] != nil {
		t.Errorf("beside another tenant, default is told the size of the database: %v", m["databaseSize"])
	}
	exec(t, s, "delete from tenant where name = 'two'")
	m := c.Do("GET", "/api/v1/metrics", nil).Want(200).Map()
	if size, ok := m["databaseSize"].(float64); !ok || size < 1<<20 {
		t.Errorf("databaseSize: %v", m["databaseSize"])
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, health.Routes)
	for _, c := range []*testkit.Client{s.User(t, "one", "reader"), s.Anonymous(t, "one")} {
		if m := c.Do("GET", "/api/v1/info", nil).Want(200).Map(); m["name"] != "Longbox" || m["version"] == "" {
			t.Errorf("%v", m)
		}
	}
	s.Anonymous(t, "one").Do("GET", "/api/v1/metrics", nil).Want(401)
	// Every role may see the inventory; an API key may be limited to less.
	limited := s.User(t, "one", "reader")
	key := limitedKey(t, s, limited)
	limited.Header.Set("Authorization", "Bearer "+key)
	limited.Do("GET", "/api/v1/metrics", nil).Want(403)
	limited.Do("GET", "/api/v1/info", nil).Want(200)
	limited.Do("GET", "/api/v1/metrics/inventory", nil).Want(403)
	for permission, want := range map[string][2]int{auth.LibrariesRead: {403, 200}, auth.SystemHealth: {200, 403}} {
		c := s.Key(t, s.User(t, "one", "reader"), permission)
		c.Do("GET", "/api/v1/metrics", nil).Want(want[0])
		c.Do("GET", "/api/v1/metrics/inventory", nil).Want(want[1])
	}
}
