package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// foreign compares the time to refuse the id of another tenant's record with that for an unknown id: a difference would
// reveal what others have.
func foreign(ctx context.Context, s *system, out *report) error {
	mine, theirs := &crowd{name: "mine", nth: 1, books: 10_000}, &crowd{name: "theirs", nth: 2, books: 10_000}
	if err := s.seed(ctx, []*crowd{mine, theirs}); err != nil {
		return err
	}
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	media, err := s.function(ctx, "media")
	if err != nil {
		return err
	}
	defer media.Stop()
	for _, c := range []struct {
		table, route string
		of           *function
	}{
		{"book", "books/%s", api}, {"book", "books/%s/pages", api}, {"book", "books/%s/pages/1", media},
		{"series", "series/%s", api}, {"library", "libraries/%s", api}, {"account", "users/%s", api},
	} {
		url := c.of.url + "/api/v1/" + c.route
		var ids []uuid.UUID
		if err := s.admin.QueryRow(ctx, "select array_agg(id) from (select id from "+c.table+" where tenant_id = $1 limit 200) x",
			theirs.tenant).Scan(&ids); err != nil {
			return err
		}
		next := 0
		other, unknown, err := alternating(listRequests, func() error {
			next++
			return mine.refused(ctx, fmt.Sprintf(url, ids[next%len(ids)]))
		}, func() error { return mine.refused(ctx, fmt.Sprintf(url, uuid.Must(uuid.NewV7()))) })
		if err != nil {
			return err
		}
		out.ratio("another tenant's id to an unknown id: "+fmt.Sprintf(c.route, "…"), other, unknown, 1.2)
		out.ratio("  and the other way round", unknown, other, 1.2)
	}
	return nil
}

// refused sends a GET that must be answered with 404.
func (c *crowd) refused(ctx context.Context, url string) error {
	_, status, err := c.client.timed(ctx, url)
	if err == nil && status != http.StatusNotFound {
		err = fmt.Errorf("%s answers %d, want 404", url, status)
	}
	return err
}
