package main

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"

	"github.com/longbox/longbox/localstack/front"
	"github.com/longbox/longbox/localstack/gateway"
)

const (
	pairs       = 300
	manyHere    = 16           // concurrent clients
	pageReaders = 40           // accounts that the requests rotate among
	bigBooks    = pairs + 2*16 // a book per cold request, and a reserve
)

// span is the location of a page in its archive.
type span struct{ offset, length int64 }

// shelf is a library with one kind of archive, with the ids of its books sorted by name.
type shelf struct {
	folder string
	ids    []uuid.UUID
	spans  []span
}

// fetch gets page n of a book and returns the milliseconds to the first and to the last byte.
type fetch func(ctx context.Context, book, n int) (first, last float64, err error)

// variant is one way to request a page.
type variant struct {
	name, shelf string
	gzip, warm  bool
	front       bool // through the front
	clients     int
	bar         float64
}

// Names of the variants that are also compared with each other.
const inflated, passed = "page deflated, inflated by us, cold index", "page deflated as gzip, cold index"

// pages compares a page through the whole path with the plain ranged GET of its bytes.
func pages(ctx context.Context, s *system, out *report) error {
	api, err := s.function(ctx, "api")
	if err != nil {
		return err
	}
	defer api.Stop()
	shelves, err := s.shelves(ctx, api)
	if err != nil {
		return err
	}
	readers, err := s.readers(ctx, pageReaders)
	if err != nil {
		return err
	}
	took := map[string][]float64{}
	for _, v := range []variant{
		{name: "page stored, cold index", shelf: "stored", clients: 1, bar: 1.5},
		{name: "page stored, index in process", shelf: "stored", warm: true, clients: 1, bar: 1.25},
		{name: inflated, shelf: "deflated", clients: 1},
		{name: passed, shelf: "deflated", gzip: true, clients: 1, bar: 1.5},
		{name: "page deflated as gzip, index in process", shelf: "deflated", gzip: true, warm: true, clients: 1, bar: 1.25},
		{name: "page stored, cold index, 16 clients", shelf: "stored", clients: manyHere, bar: 1.5},
		{name: "page stored, index in process, 16 clients", shelf: "stored", warm: true, clients: manyHere, bar: 1.25},
		{name: "page deflated as gzip, cold index, 16 cl.", shelf: "deflated", gzip: true, clients: manyHere, bar: 1.5},
		{name: "page stored, in process, through the front", shelf: "stored", warm: true, front: true, clients: 1},
	} {
		if took[v.name], err = s.pageRun(ctx, api, readers, shelves[v.shelf], v, out); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	out.ratio("page deflated: as gzip against inflated", took[passed], took[inflated], 0.3)
	for _, clients := range []int{1, manyHere} {
		if err := s.passedOn(ctx, shelves["stored"], clients, out); err != nil {
			return fmt.Errorf("bytes passed on: %w", err)
		}
	}
	return nil
}

// shelves creates and scans the two libraries.
func (s *system) shelves(ctx context.Context, api *function) (map[string]*shelf, error) {
	worker, err := s.function(ctx, "worker", "WORKER_COVERS=false")
	if err != nil {
		return nil, err
	}
	defer worker.Stop()
	all := map[string]*shelf{}
	for _, name := range []string{"stored", "deflated"} {
		if err := bigComic(filepath.Join(s.books, name), name == "deflated", bigBooks); err != nil {
			return nil, err
		}
		library, err := s.addLibrary(ctx, api, name, name)
		if err != nil {
			return nil, err
		}
		if _, err := s.scan(ctx, api, library, bigBooks); err != nil {
			return nil, err
		}
		sh := &shelf{folder: name}
		if sh.spans, err = spans(filepath.Join(s.books, name, "Series", bigName(0))); err != nil {
			return nil, err
		}
		err = s.admin.QueryRow(ctx, "select array_agg(id order by key) from book where tenant_id = $1 and library_id = $2", s.tenant, library).Scan(&sh.ids)
		if err != nil {
			return nil, err
		}
		all[name] = sh
	}
	// Statistics as autovacuum gathers them a minute after a scan.
	_, err = s.admin.Exec(ctx, "vacuum analyze")
	return all, err
}

// spans reads the locations of the pages, with the standard library.
func spans(path string) ([]span, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var out []span
	for _, f := range z.File {
		offset, err := f.DataOffset()
		if err != nil {
			return nil, err
		}
		out = append(out, span{offset, int64(f.CompressedSize64)})
	}
	return out, nil
}

// pageRun measures one variant with a new media process, whose index cache is empty. It returns the durations.
func (s *system) pageRun(ctx context.Context, api *function, readers []*client, sh *shelf, v variant, out *report) ([]float64, error) {
	media, err := s.function(ctx, "media", "RATE_LIMIT=true")
	if err != nil {
		return nil, err
	}
	defer media.Stop()
	base := media.url
	if v.front {
		f, err := front.Listen("127.0.0.1", 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		f.Open(front.Targets{API: api.address, Media: media.address, Relay: api.address}, 0, func(string, ...any) {})
		base = fmt.Sprintf("http://127.0.0.1:%d", f.Port())
	}
	ours, bare := viaLongbox(readers, base, sh, v.gzip), s.viaSDK(sh)
	book := func(i int) int { return 1 + i%(bigBooks-1) }
	if v.warm {
		book = func(int) int { return 0 }
	}
	return compare(ctx, out, v.name, v.clients, v.bar, book, ours, bare)
}

// compare compares one way to request pages with the plain one, in alternation. It returns the durations of the former.
func compare(ctx context.Context, out *report, name string, clients int, bar float64, book func(int) int, ours, bare fetch) ([]float64, error) {
	sides := [2]struct {
		fetch
		first, last []float64
	}{{fetch: ours}, {fetch: bare}}
	// Each reader requests book 0 twice. That opens the connections and, for the warm variants, fills the cache.
	for i := range max(5, 2*pageReaders/clients) {
		for _, side := range sides {
			if _, _, err := alternate(ctx, clients, i, func(int) int { return 0 }, side.fetch); err != nil {
				return nil, err
			}
		}
	}
	for i := range pairs / clients {
		for j := range sides {
			side := &sides[(i+j)%2]
			first, last, err := alternate(ctx, clients, i*clients, book, side.fetch)
			if err != nil {
				return nil, err
			}
			side.first, side.last = append(side.first, first...), append(side.last, last...)
		}
	}
	firstBar := 0.0
	if bar > 0 && clients == 1 {
		firstBar = 1.3
	}
	out.ratio(name, sides[0].last, sides[1].last, bar)
	out.ratio("  first byte", sides[0].first, sides[1].first, firstBar)
	return sides[0].last, nil
}

// passedOn measures a minimal program between reader and store, which only passes on the SDK's response.
func (s *system) passedOn(ctx context.Context, sh *shelf, clients int, out *report) error {
	f, err := s.function(ctx, "through")
	if err != nil {
		return err
	}
	defer f.Stop()
	c := newClient("")
	through := func(ctx context.Context, book, n int) (first, last float64, err error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/"+s.bucket+"/"+sh.folder+"/Series/"+bigName(book), nil)
		if err != nil {
			return 0, 0, err
		}
		sp := sh.spans[n]
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", sp.offset, sp.offset+sp.length-1))
		began := time.Now()
		res, err := c.http.Do(req)
		if err != nil {
			return 0, 0, err
		}
		if res.StatusCode != http.StatusOK {
			res.Body.Close()
			return 0, 0, fmt.Errorf("answers %s", res.Status)
		}
		return drain(res.Body, began)
	}
	book, bare := func(int) int { return 0 }, s.viaSDK(sh)
	_, err = compare(ctx, out, fmt.Sprintf("a plain program that passes bytes on, %d clients", clients), clients, 0, book, through, bare)
	return err
}

// alternate runs f once for every client concurrently.
func alternate(ctx context.Context, clients, i int, book func(int) int, f fetch) (first, last []float64, err error) {
	first, last = make([]float64, clients), make([]float64, clients)
	errs := make(chan error, clients)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			var err error
			first[c], last[c], err = f(ctx, book(i+c), (i+c)*7%pageCount)
			errs <- err
		})
	}
	all.Wait()
	for range clients {
		if err := <-errs; err != nil {
			return nil, nil, err
		}
	}
	return first, last, nil
}

// viaLongbox requests pages from the media function, as one reader after the other.
func viaLongbox(readers []*client, base string, sh *shelf, gzip bool) fetch {
	var next atomic.Int64
	return func(ctx context.Context, book, n int) (first, last float64, err error) {
		c := readers[next.Add(1)%int64(len(readers))]
		req, err := c.request(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/books/%s/pages/%d", base, sh.ids[book], n+1), nil)
		if err != nil {
			return 0, 0, err
		}
		if gzip {
			req.Header.Set("Accept-Encoding", "gzip")
		}
		began := time.Now()
		res, err := c.do(req)
		if err != nil {
			return 0, 0, err
		}
		if res.StatusCode != http.StatusOK || gzip != (res.Header.Get("Content-Encoding") == "gzip") {
			res.Body.Close()
			return 0, 0, fmt.Errorf("page answers %s, Content-Encoding %q", res.Status, res.Header.Get("Content-Encoding"))
		}
		return drain(res.Body, began)
	}
}

// viaSDK requests the same bytes from the gateway.
func (s *system) viaSDK(sh *shelf) fetch {
	c := s.s3(s.library.Endpoint())
	return func(ctx context.Context, book, n int) (first, last float64, err error) {
		sp := sh.spans[n]
		began := time.Now()
		res, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s.bucket),
			Key:   aws.String(sh.folder + "/Series/" + bigName(book)),
			Range: aws.String(fmt.Sprintf("bytes=%d-%d", sp.offset, sp.offset+sp.length-1))})
		if err != nil {
			return 0, 0, err
		}
		return drain(res.Body, began)
	}
}

// buffers avoid garbage on both sides of a comparison.
var buffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// drain reads a body to its end.
func drain(body io.ReadCloser, began time.Time) (first, last float64, err error) {
	defer body.Close()
	buffer := buffers.Get().(*[256 << 10]byte)
	defer buffers.Put(buffer)
	if _, err := io.ReadFull(body, buffer[:1]); err != nil {
		return 0, 0, err
	}
	first = since(began)
	for {
		if _, err := body.Read(buffer[:]); err == io.EOF {
			return first, since(began), nil
		} else if err != nil {
			return 0, 0, err
		}
	}
}

// s3 returns the SDK's client of a gateway.
func (s *system) s3(endpoint string) *s3.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.DisableCompression = true
	return s3.New(s3.Options{
		Region: gateway.Region, BaseEndpoint: aws.String(endpoint), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.secrets.S3AccessKey, s.secrets.S3SecretKey, ""),
		HTTPClient:  &http.Client{Transport: transport},
	})
}
