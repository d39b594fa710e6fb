package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
)

// use is what one operation consumes of the services that a cloud bills.
type use struct {
	Gets       float64 `json:"gets"` // S3 requests
	Puts       float64 `json:"puts"`
	Lists      float64 `json:"lists"`
	Bytes      float64 `json:"bytes"`      // of the response, or read during a scan
	CPU        float64 `json:"cpuMs"`      // of the function
	Trips      float64 `json:"trips"`      // to Postgres
	DatabaseMs float64 `json:"databaseMs"` // CPU time of Postgres
}

// counters is the input file of infra/cost.
type counters struct {
	Command  string         `json:"command"`
	Date     string         `json:"date"`
	Machine  string         `json:"machine"`
	Measured map[string]use `json:"measured"`
}

const costBooks, costPages = 60, 100

// costs measures the use of a page and of scanning a book: exact counts of requests, and CPU time, which is little
// affected by other load.
func costs(ctx context.Context, s *system, out *report) (err error) {
	library, media, postgres, err := s.counting()
	if err != nil {
		return err
	}
	defer func() { library.Close(); media.Close(); postgres.close() }()
	env := []string{"RATE_LIMIT=true", "LIBRARY_S3_ENDPOINT=" + library.URL, "MEDIA_S3_ENDPOINT=" + media.URL,
		"DATABASE_URL=" + postgres.url(s.postgres.AppURL()), "DATABASE_SYSTEM_URL=" + postgres.url(s.postgres.SystemURL())}
	m := meter{s: s, library: library, media: media, wire: postgres}
	all := counters{Command: "go run ./bench cost", Date: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Measured: map[string]use{}}

	api, err := s.function(ctx, "api", env...)
	if err != nil {
		return err
	}
	defer api.Stop()
	if err := bigComic(filepath.Join(s.books, "cost"), false, costBooks); err != nil {
		return err
	}
	id, err := s.addLibrary(ctx, api, "cost", "cost")
	if err != nil {
		return err
	}
	worker, err := s.function(ctx, "worker", append(env, "WORKER_COVERS=true")...)
	if err != nil {
		return err
	}
	m.start(worker.pid)
	_, err = s.scan(ctx, api, id, costBooks)
	all.Measured["book"], err = m.stop(worker.pid, costBooks, err)
	worker.Stop()
	if err != nil {
		return err
	}
	var books []uuid.UUID
	if err := s.admin.QueryRow(ctx, "select array_agg(id order by key) from book where library_id = $1", id).Scan(&books); err != nil {
		return err
	}
	pages, err := s.function(ctx, "media", env...)
	if err != nil {
		return err
	}
	defer pages.Stop()
	for _, o := range []struct {
		name, url string
		base      *function
		n         int
	}{
		{"original", "/api/v1/books/%s/pages/%d", pages, costPages},
		{"render", "/api/v1/books/%s/pages/%d?width=1200&format=webp", pages, costPages / 5},
		{"renderAgain", "/api/v1/books/%s/pages/%d?width=1200&format=webp", pages, costPages / 5}, // now it is stored
		{"stored", "/api/v1/books/%s/pages/%d?width=1200&format=webp", pages, costPages / 5},
		{"list", "/api/v1/books?libraryId=%s&pageSize=%d", api, costPages},
	} {
		m.start(o.base.pid)
		bytes, err := s.ask(ctx, o.base, o.url, books, id, o.n)
		u, err := m.stop(o.base.pid, o.n, err)
		if err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		u.Bytes = math.Round(bytes)
		all.Measured[o.name] = u
	}
	for name, u := range all.Measured {
		out.note("  %-12s %+v", name, u)
	}
	raw, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.root, "infra", "cost", "counters.json"), append(raw, '\n'), 0o644)
}

// counting starts the counting proxies.
func (s *system) counting() (library, media *counter, postgres *wire, err error) {
	library, err1 := newCounter(s.library.Endpoint())
	media, err2 := newCounter(s.media.Endpoint())
	postgres, err3 := newWire(s.postgres.AppURL(), 0)
	return library, media, postgres, errors.Join(err1, err2, err3)
}

// ask sends n requests of a few readers, each for a page of another book, and returns the mean size of the responses.
func (s *system) ask(ctx context.Context, f *function, url string, books []uuid.UUID, library uuid.UUID, n int) (bytes float64, err error) {
	readers, err := s.readers(ctx, 5)
	if err != nil {
		return 0, err
	}
	for i := range n {
		c := readers[i%len(readers)]
		path := fmt.Sprintf(url, books[i%len(books)], i%pageCount+1)
		if strings.Contains(url, "libraryId") {
			path = fmt.Sprintf(url, library, 50)
		}
		req, err := c.request(ctx, http.MethodGet, f.url+path, nil)
		if err != nil {
			return 0, err
		}
		res, err := c.do(req)
		if err != nil {
			return 0, err
		}
		if res.StatusCode != http.StatusOK {
			res.Body.Close()
			return 0, fmt.Errorf("%s answers %s", path, res.Status)
		}
		size, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil {
			return 0, err
		}
		bytes += float64(size)
	}
	return bytes / float64(n), nil
}

// meter measures the use since start.
type meter struct {
	s              *system
	library, media *counter
	wire           *wire
	began          use
}

func (m *meter) read(pid int) (u use, err error) {
	u.Gets = float64(m.library.gets.Load() + m.media.gets.Load())
	u.Puts = float64(m.library.puts.Load() + m.media.puts.Load())
	u.Lists = float64(m.library.lists.Load() + m.media.lists.Load())
	u.Bytes = float64(m.library.bytes.Load() + m.media.bytes.Load())
	u.Trips = float64(m.wire.trips.Load())
	if u.CPU, err = cpu(pid); err != nil {
		return u, err
	}
	pids, err := processes(m.s.data())
	if err != nil {
		return u, err
	}
	u.DatabaseMs, err = familyCPU(pids["postgres"])
	return u, err
}

func (m *meter) start(pid int) { m.began, _ = m.read(pid) } // stop would fail the same way

// stop returns the use of one of n operations.
func (m *meter) stop(pid, n int, failure error) (use, error) {
	u, err := m.read(pid)
	if err := errors.Join(failure, err); err != nil {
		return use{}, err
	}
	each := func(now, before float64) float64 { return math.Round((now-before)/float64(n)*1000) / 1000 }
	return use{
		Gets: each(u.Gets, m.began.Gets), Puts: each(u.Puts, m.began.Puts), Lists: each(u.Lists, m.began.Lists),
		Bytes: each(u.Bytes, m.began.Bytes), CPU: each(u.CPU, m.began.CPU),
		Trips: each(u.Trips, m.began.Trips), DatabaseMs: each(u.DatabaseMs, m.began.DatabaseMs),
	}, nil
}
