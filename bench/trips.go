package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

const tripRequests = 40

// roundTrips counts ReadyForQuery messages per authenticated GET: one is allowed.
func roundTrips(ctx context.Context, s *system, out *report) error {
	w, err := newWire(s.postgres.AppURL())
	if err != nil {
		return err
	}
	defer w.close()
	api, err := s.function(ctx, "api", "DATABASE_URL="+w.url(s.postgres.AppURL()))
	if err != nil {
		return err
	}
	defer api.Stop()
	library, book, series, err := s.tripBooks(ctx, api)
	if err != nil {
		return err
	}
	media, err := s.function(ctx, "media", "DATABASE_URL="+w.url(s.postgres.AppURL()))
	if err != nil {
		return err
	}
	defer media.Stop()
	c := newClient(s.token)
	ids := strings.NewReplacer("{library}", library.String(), "{book}", book.String(), "{series}", series.String())
	for _, route := range []string{"auth/me", "libraries", "libraries/{library}", "books?pageSize=50", "series?pageSize=50",
		"books/{book}", "series/{series}", "series/{series}/books", "books/{book}/pages", "books/in-progress", "books/on-deck",
		"progress", "progress/currently-reading", "series/in-progress", "scans/active", "tasks", "users", "admin/settings",
		"user/preferences", "api-keys", "/opds/v2/series/{series}", "/opds/search?q=comic"} {
		if err := s.trips(ctx, out, w, c, route, below(api.url, ids.Replace(route))); err != nil {
			return err
		}
	}
	return s.trips(ctx, out, w, c, "page, index in process", fmt.Sprintf("%s/api/v1/books/%s/pages/1", media.url, book))
}

// trips counts one route: the maximum over the requests after the first, without the tenant look-up, which a process
// repeats every ten seconds.
func (s *system) trips(ctx context.Context, out *report, w *wire, c *client, name, url string) error {
	var each []float64
	for range tripRequests {
		before := w.trips.Load()
		if err := c.call(ctx, http.MethodGet, url, nil, nil); err != nil {
			return err
		}
		each = append(each, float64(w.trips.Load()-before))
	}
	out.atMost("round trips "+name+" (p90)", percentile(each[1:], 90), 1, "")
	return nil
}

// tripBooks creates a library of 40 small books.
func (s *system) tripBooks(ctx context.Context, api *function) (library, book, series uuid.UUID, err error) {
	if err = smallComics(filepath.Join(s.books, "few"), 40); err != nil {
		return
	}
	worker, err := s.function(ctx, "worker", "WORKER_COVERS=false")
	if err != nil {
		return
	}
	defer worker.Stop()
	if library, err = s.addLibrary(ctx, api, "few", "few"); err != nil {
		return
	}
	if _, err = s.scan(ctx, api, library, 40); err != nil {
		return
	}
	err = s.admin.QueryRow(ctx, "select id, series_id from book where library_id = $1 limit 1", library).Scan(&book, &series)
	return
}
