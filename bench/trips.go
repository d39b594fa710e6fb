package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const tripRequests = 40

// roundTrips counts ReadyForQuery messages per authenticated GET: one is allowed. Then it measures GETs over a network
// that is slower than this machine's.
func roundTrips(ctx context.Context, s *system, out *report) error {
	w, err := newWire(s.postgres.AppURL(), 0)
	if err != nil {
		return err
	}
	defer w.close()
	env := []string{"DATABASE_URL=" + w.url(s.postgres.AppURL()), "RATE_LIMIT=true"}
	api, err := s.function(ctx, "api", env...)
	if err != nil {
		return err
	}
	defer api.Stop()
	library, book, series, err := s.tripBooks(ctx, api)
	if err != nil {
		return err
	}
	media, err := s.function(ctx, "media", env...)
	if err != nil {
		return err
	}
	defer media.Stop()
	ids := strings.NewReplacer("{library}", library.String(), "{book}", book.String(), "{series}", series.String())
	for _, route := range []string{"auth/me", "libraries", "libraries/{library}", "books?pageSize=50", "series?pageSize=50",
		"books/{book}", "series/{series}", "series/{series}/books", "books/{book}/pages", "books/in-progress", "books/on-deck",
		"progress", "progress/currently-reading", "series/in-progress", "scans/active", "tasks", "users", "admin/settings",
		"user/preferences", "api-keys", "/opds/v2/series/{series}", "/opds/search?q=comic"} {
		if err := s.trips(ctx, out, w, route, below(api.url, ids.Replace(route))); err != nil {
			return err
		}
	}
	if err := s.trips(ctx, out, w, "page, index in process", fmt.Sprintf("%s/api/v1/books/%s/pages/1", media.url, book)); err != nil {
		return err
	}
	return s.distant(ctx, out, "/api/v1/books/"+book.String())
}

// trips counts one route, as a reader of its own: the second largest number over the requests after the first. During
// one request the process may also look up the tenant, which it repeats every ten seconds.
func (s *system) trips(ctx context.Context, out *report, w *wire, name, url string) error {
	readers, err := s.readers(ctx, 1)
	if err != nil {
		return err
	}
	var each []float64
	for range tripRequests {
		before := w.trips.Load()
		if err := readers[0].call(ctx, http.MethodGet, url, nil, nil); err != nil {
			return err
		}
		each = append(each, float64(w.trips.Load()-before))
	}
	each = slices.Sorted(slices.Values(each[1:]))
	out.atMost("round trips "+name, each[len(each)-2], 1, "")
	return nil
}

const distance = 5 * time.Millisecond // round trip to the distant Postgres

// distant compares a GET that reads Postgres with the shortest statement on an open connection, both with the same
// delay of Postgres' responses: with prepared statements and without, as behind a pooler.
func (s *system) distant(ctx context.Context, out *report, path string) error {
	w, err := newWire(s.postgres.AppURL(), distance)
	if err != nil {
		return err
	}
	defer w.close()
	bare, err := pgx.Connect(ctx, w.url(s.postgres.AppURL()))
	if err != nil {
		return err
	}
	defer bare.Close(ctx)
	for _, prepare := range []string{"true", "false"} {
		api, err := s.function(ctx, "api", "DATABASE_URL="+w.url(s.postgres.AppURL()), "DATABASE_PREPARE="+prepare, "RATE_LIMIT=true")
		if err != nil {
			return err
		}
		defer api.Stop()
		readers, err := s.readers(ctx, 5)
		if err != nil {
			return err
		}
		next := 0
		get, statement, err := alternating(100, func() error {
			next++
			return readers[next%len(readers)].get(ctx, api.url+path)()
		}, func() error {
			_, err := bare.Exec(ctx, "select 1")
			return err
		})
		if err != nil {
			return err
		}
		out.ratio(fmt.Sprintf("GET, Postgres %v away, prepare=%s", distance, prepare), get, statement, 1.3)
	}
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
