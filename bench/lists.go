package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const listRequests = 200

// lists measures lists of 50 with totals in a tenant of 890,000 books and in one of 10,000, with two other tenants.
func lists(ctx context.Context, s *system, out *report) error {
	small, big := &crowd{name: "small", nth: 1, books: 10_000}, &crowd{name: "big", nth: 2, books: 890_000}
	long := &crowd{name: "long", nth: 4, books: 100_000, long: true}
	began := time.Now()
	if err := s.seed(ctx, []*crowd{small, {name: "third", nth: 3, books: 60_000}, big, long}); err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, "insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", big.tenant); err != nil {
		return err
	}
	out.note("1,060,000 books of four tenants made in %.0f s", time.Since(began).Seconds())
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	base := api.url + "/api/v1/"
	routes := []string{"books?pageSize=50", "series?pageSize=50", "books?pageSize=50&libraryId=%s", "series?pageSize=50&libraryId=%s"}
	for _, route := range routes {
		now, then, err := alternating(listRequests, big.client.get(ctx, base+big.fill(route)), small.client.get(ctx, base+small.fill(route)))
		if err != nil {
			return err
		}
		out.ratio(strings.ReplaceAll(route, "%s", "…")+", 890k to 10k", now, then, 0)
	}
	for _, route := range []string{"series?pageSize=50", "series?pageSize=500", "series/in-progress", "books/on-deck"} {
		took, err := repeat(10, long.client.get(ctx, base+route))
		if err != nil {
			return err
		}
		out.info(route+", series of 1,000, 20,000 read", median(took), "ms")
	}
	deep, err := measure(big.client.get(ctx, base+"books?pageSize=50&page=10000"))
	if err != nil {
		return err
	}
	out.info("books, page 10,000, the first time", deep, "ms")
	now, then, err := alternating(listRequests, big.client.get(ctx, base+"books?pageSize=50&page=10000"), big.client.get(ctx, base+"books?pageSize=50"))
	if err != nil {
		return err
	}
	out.ratio("books, page 10,000 to page 1 at 890k", now, then, 0)
	if err := s.tax(ctx, out, big); err != nil {
		return err
	}
	if err := s.searches(ctx, out, big); err != nil {
		return err
	}
	if err := filters(ctx, out, big, base); err != nil {
		return err
	}
	if err := s.hidden(ctx, out, big, base); err != nil {
		return err
	}
	ordered, err := orders(ctx, out, big, base)
	if err != nil {
		return err
	}
	lists, err := komga(ctx, out, big, api.url)
	if err != nil {
		return err
	}
	routes = slices.Concat(routes, ordered, lists)
	return s.plans(ctx, out, big, append(routes, "books?pageSize=50&page=10000", "books/on-deck", "books/in-progress", "books/recently-added",
		"/opds/libraries/%s?page=100", "/opds/recent?page=100", "/opds/v2/search?query=c4ca42"))
}

// fill inserts the crowd's first library into a route.
func (c *crowd) fill(route string) string {
	library := fmt.Sprintf("00000001-0000-7000-8000-%06d%06d", 1, c.nth)
	return strings.ReplaceAll(route, "%s", library)
}

// tax compares queries under row-level security with the same queries as superuser with an explicit tenant.
func (s *system) tax(ctx context.Context, out *report, c *crowd) error {
	app, err := pgx.Connect(ctx, s.postgres.AppURL())
	if err != nil {
		return err
	}
	defer app.Close(ctx)
	for _, q := range []struct{ name, sql string }{
		{"books by title", "select b.id from book b where b.tenant_id = %s and b.deleted_at is null order by b.title_sort, b.id limit 50"},
		{"series by title", "select s.id from series s where s.tenant_id = %s order by s.title_sort, s.id limit 50"},
		{"total of books", "select sum(books) from library_count where tenant_id = %s"},
	} {
		under, plain, err := alternating(listRequests, inTenant(ctx, app, c, fmt.Sprintf(q.sql, "app.tenant()")),
			inTenant(ctx, s.admin, c, fmt.Sprintf(q.sql, "'"+c.tenant.String()+"'")))
		if err != nil {
			return err
		}
		out.ratio("row security: "+q.name, under, plain, 0)
	}
	return nil
}

// searches measures title searches. A search with three consecutive letters uses the index.
func (s *system) searches(ctx context.Context, out *report, c *crowd) error {
	app, err := pgx.Connect(ctx, s.postgres.AppURL())
	if err != nil {
		return err
	}
	defer app.Close(ctx)
	for _, q := range []struct {
		in, name, words string
		bar             float64 // ms; 0: no bar
		forgives        bool    // search.fuzzy.enabled
	}{
		{"series", "a rare word", "c4ca42", 12, false}, {"series", "a word in 97", "saga 42", 12, false}, {"series", "two letters", "c4", 0, false},
		{"book", "a rare word", "c4ca42", 12, false}, {"book", "a word in 97", "saga 42", 0, false}, {"book", "two letters", "c4", 0, false},
		{"series", "a misspelt word", "c4ac42", 0, true}, {"book", "a misspelt word", "c4ac42", 0, true},
	} {
		if _, err := s.admin.Exec(ctx, `insert into setting (tenant_id, key, value) values ($1, 'search.fuzzy.enabled', $2::boolean::text)
			on conflict (tenant_id, key) do update set value = excluded.value`, c.tenant, q.forgives); err != nil {
			return err
		}
		var found int64
		sql := "from app.find('" + q.in + "', '" + q.words + "', null, null, false)"
		took, err := repeat(20, inTenant(ctx, app, c, "select id "+sql+" order by score desc limit 50"))
		if err != nil {
			return err
		}
		if err := s.admin.QueryRow(ctx, "select count(*) "+sql+", set_config('app.tenant', $1, false)", c.tenant.String()).Scan(&found); err != nil {
			return err
		}
		name := fmt.Sprintf("%s with %s (%d found)", q.in, q.name, found)
		if q.bar > 0 {
			out.atMost(name, median(took), q.bar, "ms")
		} else {
			out.info(name, median(took), "ms")
		}
	}
	return nil
}

// komga measures the lists for Komga clients. The returned ones must not read a table from end to end.
func komga(ctx context.Context, out *report, c *crowd, base string) (lists []string, err error) {
	lists = []string{"/komga/api/v1/series?library_id=%s", "/komga/api/v1/series/new?size=500", "/komga/api/v1/books?library_id=%s&sort=createdDate,desc",
		"/komga/api/v1/books?read_status=IN_PROGRESS&sort=readProgress.readDate,desc", "/komga/api/v1/books/ondeck"}
	for _, route := range append(lists, "/komga/api/v1/series?read_status=UNREAD", "/komga/api/v1/publishers", "/komga/api/v2/authors") {
		took, err := repeat(20, c.client.get(ctx, base+c.fill(route)))
		if err != nil {
			return nil, err
		}
		out.info(strings.ReplaceAll(route, "%s", "…")+", 890k", median(took), "ms")
	}
	return lists, nil
}

// filters measures lists by genre, with totals.
func filters(ctx context.Context, out *report, c *crowd, base string) error {
	genre := func(name string) object { return object{"genre": object{"operator": "is", "value": name}} }
	status := func(value string) object { return object{"readStatus": object{"operator": "is", "value": value}} }
	for _, list := range []string{"series", "books"} {
		for _, f := range []struct {
			name      string
			condition object
		}{{"a rare genre", genre("genre 7")}, {"a common genre", genre("genre 2")}, {"both", object{"allOf": []object{genre("genre 2"), genre("genre 7")}}},
			{"what was read", status("read")}, {"what was begun", status("in_progress")}, {"what was not begun", status("unread")}} {
			took, err := repeat(20, func() error {
				return c.client.call(ctx, http.MethodPost, base+list+"/list", object{"condition": f.condition}, nil)
			})
			if err != nil {
				return err
			}
			out.info(list+" of "+f.name+", 890k", median(took), "ms")
		}
	}
	began := time.Now()
	if err := c.client.call(ctx, http.MethodPost, base+"series/list/alphabetical-groups", object{}, nil); err != nil {
		return err
	}
	out.info("first letters of all series, 890k", since(began), "ms")
	return nil
}

type object = map[string]any

// inTenant returns a function that sends a query like the programs do: in one batch with the statement that enters the
// tenant.
func inTenant(ctx context.Context, conn *pgx.Conn, c *crowd, sql string) func() error {
	return func() error {
		var b pgx.Batch
		b.Queue("select set_config('app.tenant', $1, true)", c.tenant.String())
		b.Queue(sql)
		return conn.SendBatch(ctx, &b).Close()
	}
}
