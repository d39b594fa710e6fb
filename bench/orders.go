package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// orders measures each sort order of books and series in a large tenant, in the slower direction: the first page of all
// and of one library, and the first request of a page far behind. It returns the routes of the first pages.
func orders(ctx context.Context, out *report, c *crowd, base string) (routes []string, err error) {
	for _, list := range []struct {
		name, fields string
		far          int // page
	}{
		{"books", "title number file_size page_count created_at modified_at series filename last_read release_date", 10_000},
		{"series", "name date_added date_updated release_date date_read book_count file_size filename page_count rating " +
			"community_rating external_rating", 300},
	} {
		for _, field := range strings.Fields(list.fields) {
			var first, library, far float64
			for _, direction := range []string{"asc", "desc"} {
				route := fmt.Sprintf("%s?pageSize=50&sort=%s,%s", list.name, field, direction)
				for _, r := range []struct {
					route string
					times int
					into  *float64
				}{{route, 11, &first}, {route + "&libraryId=%s", 11, &library}, {fmt.Sprintf("%s&page=%d", route, list.far), 1, &far}} {
					var took []float64
					for range r.times {
						ms, status, err := c.client.timed(ctx, base+c.fill(r.route))
						if err != nil {
							return nil, err
						}
						if status != http.StatusOK {
							out.note("  %s is refused with %d", r.route, status)
						}
						took = append(took, ms)
					}
					*r.into = max(*r.into, median(took))
					if r.times > 1 {
						routes = append(routes, r.route)
					}
				}
			}
			out.info(list.name+" by "+field+", 890k", first, "ms")
			out.info("  of a library", library, "ms")
			out.info(fmt.Sprintf("  page %d, the first time", list.far), far, "ms")
		}
		whole := list.name + "?pageSize=50&full=true"
		took, err := repeat(10, c.client.get(ctx, base+whole))
		if err != nil {
			return nil, err
		}
		out.info(list.name+" in full, 890k", median(took), "ms")
		routes = append(routes, whole)
	}
	return routes, nil
}
