package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	loudLists   = 16   // connections that request lists,
	loudRenders = 50   // and that request pages in new sizes:
	loudRate    = 2500 // limit of requests per second of each kind, together 100 times what one user may send
	quietAsks   = 150
	quietBooks  = 10
)

// neighbour is a tenant with seeded books, and a library with pages to render.
type neighbour struct {
	*crowd
	books []uuid.UUID
	asked atomic.Int64 // number of renders: each is of another page
}

// fairness measures the effect of one tenant on another. The loud tenant sends far more requests than allowed, and
// scans a very large library (BENCH_FAIR_BOOKS, 100,000 by default). Both tenants and the benchmark share the machine's
// CPUs, so the cost of refusing the loud one is part of the ratio.
func fairness(ctx context.Context, s *system, out *report) error {
	books := 100_000
	if v := os.Getenv("BENCH_FAIR_BOOKS"); v != "" {
		if _, err := fmt.Sscan(v, &books); err != nil || books < 1000 {
			return fmt.Errorf("BENCH_FAIR_BOOKS: must be at least 1000, is %q", v)
		}
	}
	loud, quiet := &neighbour{crowd: &crowd{name: "loud", nth: 1, books: 60_000}}, &neighbour{crowd: &crowd{name: "quiet", nth: 2, books: 10_000}}
	if err := s.seed(ctx, []*crowd{loud.crowd, quiet.crowd}); err != nil {
		return err
	}
	for _, err := range []error{
		bigComic(filepath.Join(s.books, "shelf"), false, 8), smallComics(filepath.Join(s.books, "few"), quietBooks),
		sparseComics(filepath.Join(s.books, "sparse"), books),
	} {
		if err != nil {
			return err
		}
	}
	var running [3]*function
	for i, name := range []string{"api", "media", "worker"} {
		f, err := s.function(ctx, name, "RATE_LIMIT=true", "WORKER_COVERS=false")
		if err != nil {
			return err
		}
		defer f.Stop()
		running[i] = f
	}
	api, media := running[0], running[1]
	for _, n := range []*neighbour{loud, quiet} {
		if _, err := s.admin.Exec(ctx, "insert into library_root (tenant_id, path, bucket) values ($1, $2, $3)", n.tenant, s.books, s.bucket); err != nil {
			return err
		}
		library, _, err := n.scan(ctx, api, s.books, "shelf")
		if err != nil {
			return err
		}
		if err := s.admin.QueryRow(ctx, "select array_agg(id) from book where tenant_id = $1 and library_id = $2",
			n.tenant, library).Scan(&n.books); err != nil {
			return err
		}
	}
	return s.beside(ctx, out, api, media, loud, quiet, books)
}

// beside measures the quiet tenant alone, during the loud one's requests, and during its scan.
func (s *system) beside(ctx context.Context, out *report, api, media *function, loud, quiet *neighbour, books int) error {
	lists, renders, err := quiet.ask(ctx, api, media)
	if err != nil {
		return err
	}
	noise := newNoise(ctx)
	loud.makeNoise(noise, api, media)
	listsBeside, rendersBeside, err := quiet.ask(ctx, api, media)
	noise.stop()
	if err != nil {
		return err
	}
	out.note("the loud tenant got %d responses, %d of them with 429, %d with 503, %d failed",
		noise.answers.Load(), noise.refused.Load(), noise.busy.Load(), noise.failed.Load())
	if answers := noise.answers.Load(); answers == 0 || 100*noise.failed.Load() > answers {
		return errors.New("the loud tenant did not get the responses that it should: nothing was measured beside it")
	}
	out.info("list of 50, p95 alone", percentile(lists, 95), "ms")
	out.info("list of 50, p95 beside the loud tenant", percentile(listsBeside, 95), "ms")
	out.atMost("  ratio", percentile(listsBeside, 95)/percentile(lists, 95), 1.3, "x")
	out.info("page in a new size, p95 alone", percentile(renders, 95), "ms")
	out.info("page in a new size, p95 beside the loud tenant", percentile(rendersBeside, 95), "ms")
	out.atMost("  ratio", percentile(rendersBeside, 95)/percentile(renders, 95), 1.3, "x")

	_, alone, err := quiet.scan(ctx, api, s.books, "few")
	if err != nil {
		return err
	}
	large, err := loud.library(ctx, api, s.books, "sparse")
	if err != nil {
		return err
	}
	if err := loud.client.call(ctx, http.MethodPost, api.url+"/api/v1/libraries/"+large.String()+"/scan", nil, nil); err != nil {
		return err
	}
	if err := s.underWay(ctx, large, books/50); err != nil {
		return err
	}
	_, beside, err := quiet.scan(ctx, api, s.books, "few")
	if err != nil {
		return err
	}
	var left int
	if err := s.admin.QueryRow(ctx, "select count(*) from task where tenant_id = $1 and status in ('pending', 'running')",
		loud.tenant).Scan(&left); err != nil {
		return err
	}
	if left == 0 {
		return errors.New("the large scan ended before the small one: set BENCH_FAIR_BOOKS to more")
	}
	out.info(fmt.Sprintf("scan of %d books alone", quietBooks), alone, "s")
	out.info(fmt.Sprintf("  beside a scan of %d, of which %d tasks were left", books, left), beside, "s")
	out.atMost("  delayed by", beside-alone, 10, "s")
	return nil
}

// underWay waits until this many books of a library are analysed.
func (s *system) underWay(ctx context.Context, library uuid.UUID, books int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		var done int
		if err := s.admin.QueryRow(ctx, "select count(*) from book where library_id = $1 and analyzed", library).Scan(&done); err != nil || done >= books {
			return err
		}
	}
	return nil
}

// library creates a library over a folder of the library root.
func (n *neighbour) library(ctx context.Context, api *function, root, folder string) (uuid.UUID, error) {
	return n.client.addLibrary(ctx, api, object{"name": folder + uuid.NewString(), "path": filepath.Join(root, folder)})
}

// scan creates and scans a library, and returns the duration in seconds.
func (n *neighbour) scan(ctx context.Context, api *function, root, folder string) (library uuid.UUID, seconds float64, err error) {
	if library, err = n.library(ctx, api, root, folder); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	base := api.url + "/api/v1/libraries/" + library.String()
	began := time.Now()
	if err = n.client.call(ctx, http.MethodPost, base+"/scan", nil, nil); err != nil {
		return
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		var at struct{ Status string }
		if err = n.client.call(ctx, http.MethodGet, base+"/scan-status", nil, &at); err != nil {
			return
		}
		switch at.Status {
		case "pending", "running":
		case "completed":
			return library, time.Since(began).Seconds(), nil
		default:
			return library, 0, fmt.Errorf("the scan of %s is %s", folder, at.Status)
		}
	}
	return
}

// ask returns the durations of lists and of pages in a new size, requested one after the other and below the rate
// limit, for at most half a minute.
func (n *neighbour) ask(ctx context.Context, api, media *function) (lists, renders []float64, err error) {
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	began := time.Now()
	for i := range quietAsks {
		if time.Since(began) > 30*time.Second {
			break
		}
		<-pace.C
		took, err := measure(n.client.get(ctx, fmt.Sprintf("%s/api/v1/books?pageSize=50&page=%d", api.url, 1+i%10)))
		if err != nil {
			return nil, nil, err
		}
		lists = append(lists, took)
		if i%5 > 0 {
			continue
		}
		took, status, err := n.client.timed(ctx, n.render(media))
		if err != nil || status != http.StatusOK {
			return nil, nil, errors.Join(fmt.Errorf("a page: status %d", status), err)
		}
		renders = append(renders, took)
	}
	return lists, renders, nil
}

// render returns the URL of a page in a size that was never requested.
func (n *neighbour) render(media *function) string {
	i := int(n.asked.Add(1))
	return fmt.Sprintf("%s/api/v1/books/%s/pages/%d?width=1200&format=webp", media.url, n.books[i/pageCount%len(n.books)], 1+i%pageCount)
}

// noise is a client that sends too many requests until it is stopped.
type noise struct {
	ctx                            context.Context
	end                            context.CancelFunc
	all                            sync.WaitGroup
	answers, refused, busy, failed atomic.Int64
}

func newNoise(ctx context.Context) *noise {
	n := &noise{}
	n.ctx, n.end = context.WithCancel(ctx)
	return n
}

func (n *noise) stop() {
	n.end()
	n.all.Wait()
}

// count counts a response. Others than 200, 429 and 503 have failed.
func (n *noise) count(status int, err error) {
	n.answers.Add(1)
	switch {
	case n.ctx.Err() != nil:
	case err != nil:
		n.failed.Add(1)
	case status == http.StatusTooManyRequests:
		n.refused.Add(1)
	case status == http.StatusServiceUnavailable:
		n.busy.Add(1)
	case status != http.StatusOK:
		n.failed.Add(1)
	}
}

// makeNoise requests the largest lists with the deepest conditions, far above the rate limit, and many pages at once,
// whatever the responses are.
func (n *neighbour) makeNoise(to *noise, api, media *function) {
	leaf := `{"title":{"operator":"contains","value":"saga"}}`
	condition := strings.Repeat(`{"anyOf":[`+leaf+`,{"allOf":[`+leaf+`,`, 3) + leaf + strings.Repeat(`]}]}`, 3)
	for range loudLists {
		to.all.Go(func() {
			pace := time.NewTicker(loudLists * time.Second / loudRate)
			defer pace.Stop()
			for to.ctx.Err() == nil {
				<-pace.C
				req, err := n.client.request(to.ctx, http.MethodPost, api.url+"/api/v1/books/list?pageSize=500", []byte(`{"condition":`+condition+`}`))
				if err != nil {
					to.count(0, err)
					return
				}
				res, err := n.client.http.Do(req)
				if err != nil {
					to.count(0, err)
					continue
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				to.count(res.StatusCode, err)
			}
		})
	}
	for range loudRenders {
		to.all.Go(func() {
			pace := time.NewTicker(loudRenders * time.Second / loudRate)
			defer pace.Stop()
			for to.ctx.Err() == nil {
				<-pace.C
				_, status, err := n.client.timed(to.ctx, n.render(media))
				to.count(status, err)
			}
		})
	}
}
