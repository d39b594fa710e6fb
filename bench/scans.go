package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const few, many, large = 2_000, 10_000, 300 // large has pages of real size

// scans measures generated libraries of 2,000 and 10,000 small books with the real worker.
func scans(ctx context.Context, s *system, out *report) error {
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	for _, n := range []int{few, many} {
		if err := smallComics(filepath.Join(s.books, scanFolder(n)), n); err != nil {
			return err
		}
	}
	peak := map[int]float64{}
	for _, n := range []int{few, many} {
		lib, p, err := s.fullScan(ctx, api, out, fmt.Sprintf("scan %d books, no covers", n), scanFolder(n), n, 500, "WORKER_COVERS=false")
		if err != nil {
			return err
		}
		if peak[n] = p; n == many {
			if err := s.rescans(ctx, api, out, lib, n); err != nil {
				return err
			}
		}
	}
	out.info(fmt.Sprintf("worker's peak memory at %d books", few), peak[few], "MB")
	out.info(fmt.Sprintf("worker's peak memory at %d books", many), peak[many], "MB")
	out.atMost("peak memory, 10,000 against 2,000", peak[many]/peak[few], 1.2, "x")
	_, p, err := s.fullScan(ctx, api, out, fmt.Sprintf("scan %d books with covers", few), scanFolder(few), few, 40, "WORKER_COVERS=true")
	if err != nil {
		return err
	}
	out.info("worker's peak memory with covers", p, "MB")
	if err := bigComic(filepath.Join(s.books, "scanpages"), false, large); err != nil {
		return err
	}
	name := fmt.Sprintf("scan %d books with covers, 1.4 MB a page", large)
	if _, _, err := s.fullScan(ctx, api, out, name, "scanpages", large, 0, "WORKER_COVERS=true"); err != nil {
		return err
	}
	return s.countedScan(ctx, api, out)
}

func scanFolder(books int) string { return "scan" + strconv.Itoa(books) }

// fullScan scans n new books with a new worker and returns its peak memory in MB. bar is the minimum of books per
// second; 0 means no bar.
func (s *system) fullScan(ctx context.Context, api *function, out *report, name, folder string, n int, bar float64,
	env ...string) (library uuid.UUID, peak float64, err error) {
	worker, err := s.function(ctx, "worker", env...)
	if err != nil {
		return
	}
	defer worker.Stop()
	if library, err = s.addLibrary(ctx, api, name, folder); err != nil {
		return
	}
	seconds, err := s.scan(ctx, api, library, n)
	if err != nil {
		return
	}
	out.info(name, seconds, "s")
	if bar > 0 {
		out.atLeast("  books per second", float64(n)/seconds, bar, "/s")
	} else {
		out.info("  books per second", float64(n)/seconds, "/s")
	}
	peak, err = memory(worker.pid, "VmHWM")
	return
}

// rescans compares scans without changes with a plain listing of the same folder.
func (s *system) rescans(ctx context.Context, api *function, out *report, library uuid.UUID, n int) error {
	worker, err := s.function(ctx, "worker", "WORKER_COVERS=false")
	if err != nil {
		return err
	}
	defer worker.Stop()
	var now, list []float64
	before, err := s.written(ctx)
	if err != nil {
		return err
	}
	const times = 7
	for i := range times {
		took, err := s.walk(ctx, scanFolder(n)+"/", n)
		if err != nil {
			return err
		}
		seconds, err := s.scan(ctx, api, library, n)
		if err != nil {
			return err
		}
		if i > 0 { // The first ones warm up both.
			list, now = append(list, took), append(now, seconds*1000)
		}
	}
	worker.Stop() // Its connections then report their writes.
	after, err := s.written(ctx)
	if err != nil {
		return err
	}
	out.ratio(fmt.Sprintf("rescan of %d unchanged, against listing", n), now, list, 1.5)
	content, rest := 0.0, 0.0
	for table, rows := range after {
		switch table {
		case "book", "book_metadata", "page_index", "series", "series_genre", "genre", "library_count":
			content += rows - before[table]
		default:
			rest += rows - before[table]
		}
	}
	out.atMost("  rows of content written by a rescan", content/times, 0, "")
	out.info("  other rows (task, scan, library)", rest/times, "")
	return nil
}

// walk lists a folder with the SDK only and returns the milliseconds.
func (s *system) walk(ctx context.Context, prefix string, want int) (float64, error) {
	began := time.Now()
	pages := s3.NewListObjectsV2Paginator(s.s3(s.library.Endpoint()), &s3.ListObjectsV2Input{Bucket: aws.String(s.bucket), Prefix: aws.String(prefix)})
	books := 0
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return 0, err
		}
		for _, o := range p.Contents {
			if strings.HasSuffix(*o.Key, ".cbz") {
				books++
			}
		}
	}
	if books != want {
		return 0, fmt.Errorf("the listing of %s has %d of %d books", prefix, books, want)
	}
	return since(began), nil
}

// written returns how many rows of each table were inserted, updated and deleted so far. Connections report within a
// second, or when they end.
func (s *system) written(ctx context.Context) (map[string]float64, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(1500 * time.Millisecond):
	}
	rows, _ := s.admin.Query(ctx, "select relname::text, (n_tup_ins + n_tup_upd + n_tup_del)::float8 from pg_stat_user_tables")
	out := map[string]float64{}
	var table string
	var n float64
	_, err := pgx.ForEachRow(rows, []any{&table, &n}, func() error { out[table] = n; return nil }) // also returns the error of Query
	return out, err
}

// countedScan scans 2,000 books again as another library, through counting proxies. Their own cost keeps them out of
// the timed runs.
func (s *system) countedScan(ctx context.Context, api *function, out *report) error {
	w, err := newWire(s.postgres.AppURL(), 0)
	if err != nil {
		return err
	}
	defer w.close()
	c, err := newCounter(s.library.Endpoint())
	if err != nil {
		return err
	}
	defer c.Close()
	before, err := s.written(ctx)
	if err != nil {
		return err
	}
	worker, err := s.function(ctx, "worker", "WORKER_COVERS=false", "LIBRARY_S3_ENDPOINT="+c.URL,
		"DATABASE_URL="+w.url(s.postgres.AppURL()), "DATABASE_SYSTEM_URL="+w.url(s.postgres.SystemURL()))
	if err != nil {
		return err
	}
	library, err := s.addLibrary(ctx, api, "counted", scanFolder(few))
	if err == nil {
		_, err = s.scan(ctx, api, library, few)
	}
	worker.Stop()
	if err != nil {
		return err
	}
	after, err := s.written(ctx)
	if err != nil {
		return err
	}
	rows := 0.0
	for table, n := range after {
		rows += n - before[table]
	}
	out.info("S3 requests per book", float64(c.requests.Load())/few, "")
	out.info("S3 bytes per book", float64(c.bytes.Load())/few, "B")
	out.info("Postgres round trips per book", float64(w.trips.Load())/few, "")
	out.info("Postgres rows written per book", rows/few, "")
	for _, table := range slices.Sorted(maps.Keys(after)) {
		if per := (after[table] - before[table]) / few; per >= 0.01 {
			out.info("  "+table, per, "")
		}
	}
	return nil
}
