package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

// bigBook is a file whose import and first page are measured.
type bigBook struct {
	name, file string
	write      func(ctx context.Context, path string) error
	indexed    bool // the file has an index of its pages: the limits of the import apply
}

var bigFormats = []bigBook{
	{"CBZ of 2 GB", "big.cbz", writeBigComic, true},
	{"solid RAR of 500 MB", "big.cbr", writeSolidRAR, false},
	{"solid 7z of 500 MB", "big.cb7", writeSolid7z, false},
	{"PDF of 300 MB", "big.pdf", writeDocument, false},
}

// formats measures the cost of the largest books: import with cover, the first page without caches, and the page pack
// of formats without directly readable pages. The import of an indexed file may take 3 requests and 1 % of its bytes.
// Memory may be 256 MB.
func formats(ctx context.Context, s *system, out *report) error {
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	for _, b := range bigFormats {
		path := filepath.Join(s.books, "formats-"+b.file, "Series", b.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		err := b.write(ctx, path)
		if errors.Is(err, exec.ErrNotFound) {
			out.note("%s: %v; apt-get install p7zip-full", b.name, err)
			continue
		}
		if err == nil {
			err = s.bigBook(ctx, api, out, b, path)
		}
		if err := errors.Join(err, os.RemoveAll(filepath.Dir(path))); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

func (s *system) bigBook(ctx context.Context, api *function, out *report, b bigBook, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	counted, err := newCounter(s.library.Endpoint())
	if err != nil {
		return err
	}
	defer counted.Close()
	worker, err := s.function(ctx, "worker", "LIBRARY_S3_ENDPOINT="+counted.URL)
	if err != nil {
		return err
	}
	defer worker.Stop()
	library, err := s.addLibrary(ctx, api, b.name, filepath.Base(filepath.Dir(filepath.Dir(path))))
	if err != nil {
		return err
	}
	seconds, err := s.scan(ctx, api, library, 1)
	if err != nil {
		return err
	}
	out.note("%s: %d bytes", b.name, info.Size())
	percent := func(n int64) float64 { return float64(n) / float64(info.Size()) * 100 }
	out.info("  import with cover", seconds, "s")
	if b.indexed {
		out.atMost("  requests of the import", float64(counted.gets.Load()), 3, "")
		out.atMost("  read by the import", percent(counted.bytes.Load()), 1, "%")
	} else {
		out.info("  requests of the import", float64(counted.gets.Load()), "")
		out.info("  read by the import", percent(counted.bytes.Load()), "%")
	}
	var id uuid.UUID
	if err := s.admin.QueryRow(ctx, "select id from book where library_id = $1", library).Scan(&id); err != nil {
		return err
	}
	if err := s.coldPages(ctx, out, counted, info.Size(), id); err != nil {
		return err
	}
	if err := s.packed(ctx, out, counted, id); err != nil {
		return err
	}
	peak, err := memory(worker.pid, "VmHWM")
	out.atMost("  peak memory of worker", peak, 256, "MB")
	return err
}

// coldPages reads two pages with a media function that requests no page pack.
func (s *system) coldPages(ctx context.Context, out *report, counted *counter, size int64, id uuid.UUID) error {
	media, err := s.function(ctx, "media", "LIBRARY_S3_ENDPOINT="+counted.URL, "PAGE_PACKS=never")
	if err != nil {
		return err
	}
	defer media.Stop()
	for _, p := range []struct {
		name string
		n    int
	}{{"first page", 1}, {"page 10", costlyPage}} {
		requests, bytes, began := counted.gets.Load(), counted.bytes.Load(), time.Now()
		if err := s.getPage(ctx, media, id, p.n); err != nil {
			return err
		}
		out.info("  "+p.name, time.Since(began).Seconds(), "s")
		out.info("    requests", float64(counted.gets.Load()-requests), "")
		out.info("    read", float64(counted.bytes.Load()-bytes)/float64(size)*100, "%")
	}
	peak, err := memory(media.pid, "VmHWM")
	out.atMost("  peak memory of media", peak, 256, "MB")
	return err
}

// costlyPage is a page that must be rendered or decompressed, in every book with such pages.
const costlyPage = 10

// packed requests a costly page to trigger its page pack, waits for the pack and reads the page from it.
func (s *system) packed(ctx context.Context, out *report, counted *counter, id uuid.UUID) error {
	media, err := s.function(ctx, "media", "LIBRARY_S3_ENDPOINT="+counted.URL)
	if err != nil {
		return err
	}
	defer media.Stop()
	if err := s.getPage(ctx, media, id, costlyPage); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the page pack has not ended after %v", patience))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting int
		var seconds *float64
		var failure *string
		err := s.admin.QueryRow(ctx, `select count(*) filter (where status in ('pending', 'running')), max(extract(epoch from completed_at - created_at))::float8,
			max(last_error) from task where book_id = $1 and type = 'pack_book'`, id).Scan(&waiting, &seconds, &failure)
		switch {
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		case failure != nil:
			return fmt.Errorf("page pack: %s", *failure)
		case waiting == 0 && seconds == nil:
			return nil // every page is a range of the file
		case waiting == 0:
			out.info("  page pack", *seconds, "s")
			requests, began := counted.gets.Load(), time.Now()
			if err := s.getPage(ctx, media, id, costlyPage); err != nil {
				return err
			}
			out.info("  page 10, from the pack", time.Since(began).Seconds(), "s")
			out.atMost("    requests to the library", float64(counted.gets.Load()-requests), 0, "")
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// getPage reads an original page, and retries when told to, for a limited time.
func (s *system) getPage(ctx context.Context, media *function, id uuid.UUID, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := newClient(s.token)
	for {
		req, err := c.request(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/books/%s/pages/%d", media.url, id, n), nil)
		if err != nil {
			return err
		}
		res, err := c.http.Do(req)
		if err != nil {
			return err
		}
		size, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		switch {
		case err != nil:
			return err
		case res.StatusCode == http.StatusOK && size > 0:
			return nil
		case res.StatusCode != http.StatusServiceUnavailable:
			return fmt.Errorf("page %d answers %s", n, res.Status)
		}
	}
}
