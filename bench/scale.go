package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// scales are the sizes of the sparse libraries, in books. A scan of the middle one takes only a few seconds, in which
// the machine's speed may vary by a factor of two. So there are three of it, and growth is computed from their median.
var scales = []int{1_000, 10_000, 10_000, 10_000, 100_000}

const millionKeys = 1_000_000

// scale measures sparse libraries with one worker: growth, a rescan without changes, a tenth of the files moved, and
// only listing and comparing a million keys.
func scale(ctx context.Context, s *system, out *report) error {
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	seconds, peaks := map[int][]float64{}, map[int][]float64{}
	for i, n := range scales {
		took, peak, err := s.sparseScan(ctx, api, out, "sparse"+strconv.Itoa(i), n)
		if err != nil {
			return err
		}
		seconds[n], peaks[n] = append(seconds[n], took), append(peaks[n], peak)
	}
	out.atMost("scan, 100,000 against 10,000", median(seconds[100_000])/median(seconds[10_000]), 10.5, "x")
	out.atMost("peak memory, 100,000 against 10,000", median(peaks[100_000])/median(peaks[10_000]), 1.2, "x")
	out.atMost("peak memory, 100,000 against 1,000", median(peaks[100_000])/median(peaks[1_000]), 1.2, "x")
	return s.million(ctx, api, out)
}

// sparseScan scans n new sparse books, again without changes, and again with a tenth of them in other folders.
func (s *system) sparseScan(ctx context.Context, api *function, out *report, name string, n int) (seconds, peak float64, err error) {
	folder := filepath.Join(s.books, name)
	if err := sparseComics(folder, n); err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(folder)
	syscall.Sync() // otherwise the new files are still being written while they are read
	if err := readEnds(folder); err != nil {
		return 0, 0, err
	}
	c, err := newCounter(s.library.Endpoint())
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	w, err := newWire(s.postgres.AppURL(), 0)
	if err != nil {
		return 0, 0, err
	}
	defer w.close()
	worker, err := s.function(ctx, "worker", "WORKER_COVERS=false")
	if err != nil {
		return 0, 0, err
	}
	defer func() { worker.Stop() }()
	library, err := s.addLibrary(ctx, api, name, name)
	if err != nil {
		return 0, 0, err
	}
	if seconds, err = s.scan(ctx, api, library, n); err != nil {
		return 0, 0, err
	}
	if peak, err = memory(worker.pid, "VmHWM"); err != nil {
		return 0, 0, err
	}
	out.info(fmt.Sprintf("scan %d sparse books", n), seconds, "s")
	out.atLeast("  books per second", float64(n)/seconds, 1000, "/s")
	out.atMost("  worker's peak memory", peak, 256, "MB")
	if n >= 100_000 { // with fewer books, a hundredth is only a few batches
		first, last, err := s.hundredths(ctx, library, n)
		if err != nil {
			return 0, 0, err
		}
		out.atMost("  last hundredth of the books against the first", last/first, 1.1, "x")
	}
	if n >= 10_000 {
		if _, err := s.admin.Exec(ctx, "vacuum analyze"); err != nil { // autovacuum does it within a minute
			return 0, 0, err
		}
		if err := s.unchanged(ctx, api, out, library, name, n); err != nil {
			return 0, 0, err
		}
	}
	worker.Stop()
	if worker, err = s.function(ctx, "worker", "WORKER_COVERS=false", "LIBRARY_S3_ENDPOINT="+c.URL,
		"DATABASE_URL="+w.url(s.postgres.AppURL()), "DATABASE_SYSTEM_URL="+w.url(s.postgres.SystemURL())); err != nil {
		return 0, 0, err
	}
	for i := 0; i < n; i += 200 { // every tenth series
		series := filepath.Dir(filepath.Join(folder, sparseName(i)))
		if err := os.Rename(series, series+" (moved)"); err != nil {
			return 0, 0, err
		}
	}
	took, err := s.scan(ctx, api, library, n)
	if err != nil {
		return 0, 0, err
	}
	out.info("  scan after a tenth was moved", took, "s")
	out.info("  S3 requests per moved book", float64(c.requests.Load())/float64(n/10), "")
	out.info("  Postgres round trips per moved book", float64(w.trips.Load())/float64(n/10), "")
	return seconds, peak, nil
}

// readEnds reads the last 64 KB of each file, like a scan, to load them into memory: 6.4 GB for 100,000 books. A
// virtual machine gets its memory from the host on first use. With memory that was already in use, a file took 33 µs;
// without, 50 to 200 µs, which says nothing about the growth of a scan.
func readEnds(dir string) error {
	end := make([]byte, 64<<10)
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		_, err = f.ReadAt(end, max(info.Size()-int64(len(end)), 0))
		return err
	})
}

// hundredths returns the analysis time of the first and of the last hundredth of a library's books, in seconds between
// the commits of their batches.
func (s *system) hundredths(ctx context.Context, library uuid.UUID, n int) (first, last float64, err error) {
	at := func(i int) (t time.Time, err error) {
		err = s.admin.QueryRow(ctx, "select updated_at from book where tenant_id = $1 and library_id = $2 order by updated_at, id offset $3 limit 1",
			s.tenant, library, i).Scan(&t)
		return t, err
	}
	var times []time.Time
	for _, i := range []int{0, n / 100, n - n/100 - 1, n - 1} {
		t, err := at(i)
		if err != nil {
			return 0, 0, err
		}
		times = append(times, t)
	}
	return times[1].Sub(times[0]).Seconds(), times[3].Sub(times[2]).Seconds(), nil
}

// unchanged compares scans without changes with a plain listing of the same folder.
func (s *system) unchanged(ctx context.Context, api *function, out *report, library uuid.UUID, name string, n int) error {
	var now, list []float64
	for range 5 {
		took, err := s.walk(ctx, name+"/", n)
		if err != nil {
			return err
		}
		seconds, err := s.scan(ctx, api, library, n)
		if err != nil {
			return err
		}
		list, now = append(list, took), append(now, seconds*1000)
	}
	out.ratio("  rescan unchanged, against listing", now[1:], list[1:], 1.2)
	return nil
}

// million lists a million canned keys and compares them with as many rows; the baseline is ten thousand.
func (s *system) million(ctx context.Context, api *function, out *report) error {
	per := map[int]float64{}
	for _, n := range []int{10_000, millionKeys} {
		took, err := s.difference(ctx, api, out, n)
		if err != nil {
			return err
		}
		per[n] = took / float64(n)
	}
	out.atMost("  cost per key, 1,000,000 against 10,000", per[millionKeys]/per[10_000], 1.1, "x")
	return nil
}

func (s *system) difference(ctx context.Context, api *function, out *report, n int) (seconds float64, err error) {
	name := "canned" + strconv.Itoa(n)
	if err := os.Mkdir(filepath.Join(s.books, name), 0o755); err != nil {
		return 0, err
	}
	store := newCanned(s.bucket, name, n)
	defer store.Close()
	library, err := s.addLibrary(ctx, api, name, name)
	if err != nil {
		return 0, err
	}
	if err := s.cannedRows(ctx, library, n); err != nil {
		return 0, err
	}
	worker, err := s.function(ctx, "worker", "WORKER_COVERS=false", "LIBRARY_S3_ENDPOINT="+store.URL)
	if err != nil {
		return 0, err
	}
	defer worker.Stop()
	before, err := cpu(worker.pid)
	if err != nil {
		return 0, err
	}
	if seconds, err = s.scan(ctx, api, library, n); err != nil {
		return 0, err
	}
	after, err := cpu(worker.pid)
	if err != nil {
		return 0, err
	}
	peak, err := memory(worker.pid, "VmHWM")
	if err != nil {
		return 0, err
	}
	out.info(fmt.Sprintf("listing and difference of %d keys", n), seconds, "s")
	out.info("  keys per second", float64(n)/seconds, "/s")
	out.atLeast("  keys per second of the worker's CPU", float64(n)/(after-before)*1000, 150_000, "/s")
	out.atMost("  worker's peak memory", peak, 256, "MB")
	return seconds, nil
}

// cannedRows stores the books of the canned keys as if they had been scanned.
func (s *system) cannedRows(ctx context.Context, library uuid.UUID, n int) error {
	ids := make([]uuid.UUID, (n+19)/20)
	paths := make([]string, len(ids))
	for i := range ids {
		ids[i], paths[i] = uuid.Must(uuid.NewV7()), filepath.Dir(sparseName(i*20))
	}
	if _, err := s.admin.Exec(ctx, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select $1, id, $2, path, path, path, path, lower(path) from unnest($3::uuid[], $4::text[]) t (id, path)`, s.tenant, library, ids, paths); err != nil {
		return err
	}
	const at = 10_000
	for from := 0; from < n; from += at {
		var keys []string
		var series []uuid.UUID
		for i := from; i < min(from+at, n); i++ {
			keys, series = append(keys, sparseName(i)), append(series, ids[i/20])
		}
		_, err := s.admin.Exec(ctx, `insert into book (tenant_id, id, library_id, series_id, key, size, etag, modified_at, format, fingerprint,
			title, title_sort, search_title, number, page_count, analyzed)
			select $1, gen_random_uuid(), $2, series, key, $3, $4, $5, 'cbz', md5(key), key, key, key, 1, $6, true
			from unnest($7::text[], $8::uuid[]) t (key, series)`, s.tenant, library, cannedSize, cannedTag, cannedTime, sparsePages, keys, series)
		if err != nil {
			return err
		}
	}
	_, err := s.admin.Exec(ctx, "vacuum analyze")
	return err
}
