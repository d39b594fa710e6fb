package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Parameters of the simulated evenings. They are not measured; change them to simulate another library.
const (
	cdnBooks   = 12 // books per tenant at first; each evening adds one, which is then read most
	cdnPages   = 24 // pages per book
	cdnReads   = 5  // books per reader and evening
	cdnBack    = 10 // percent of pages after which the reader returns to the previous one
	cdnAgain   = 25 // percent of books that are read again, after the hour has changed
	cdnZipf    = 1.1
	cdnEvening = 3
)

// cdnReaders are the numbers of readers per tenant.
var cdnReaders = map[string]int{"cdn-large": 25, "cdn-middle": 15, "cdn-small": 10}

// cdnForms are the page forms of devices: a desktop, a tablet, a phone.
var cdnForms = []cdnForm{{}, {400, "webp"}, {300, "webp"}}

type cdnForm struct {
	width  int
	format string
}

// cdnRun measures which share of an evening's page requests and bytes reaches a function.
func cdnRun(ctx context.Context, s *system, out *report) error {
	e, err := s.startEdge(ctx)
	if err != nil {
		return err
	}
	defer e.close()
	tenants, err := e.tenants(ctx)
	if err != nil {
		return err
	}
	out.note("%d tenants, %v readers, %d books each and one more an evening, %d pages a book, %d books a reader and evening",
		len(tenants), cdnReaders, cdnBooks, cdnPages, cdnReads)
	out.note("a page request is each time a reader looks at a page; one answered by the browser's own cache is one, too")
	for n := 1; n <= cdnEvening+1; n++ {
		for _, t := range tenants {
			if err := e.addBook(ctx, t); err != nil {
				return err
			}
		}
		plain := n > cdnEvening
		c, err := e.evening(ctx, tenants, plain, uint64(n))
		if err != nil {
			return err
		}
		name := fmt.Sprintf("evening %d", n)
		if plain {
			name += ", clients that know no address"
		}
		c.tell(out, name, n == cdnEvening)
	}
	return e.signatures(ctx, out)
}

// tell prints an evening. With judged it checks the bar.
func (c *cdnCount) tell(out *report, name string, judged bool) {
	page := func(n ...*atomic.Int64) float64 { return 100 * sum(n...) / sum(&c.pages) }
	out.note("%s: %d page requests, %d cover requests, %d other requests to functions", name, c.pages.Load(), c.covers.Load(), c.other.Load())
	share := 100 - page(&c.reached)
	if judged {
		out.atLeast(name+": pages that reach no function", share, 95, "%")
	} else {
		out.info(name+": pages that reach no function", share, "%")
	}
	out.info("  picture from the browser's cache", page(&c.browser), "%")
	out.info("  picture from the CDN's cache", page(&c.hit), "%")
	out.info("  picture fetched by the CDN from the bucket", page(&c.stored), "%")
	out.info("  picture fetched by the CDN from media", page(&c.missed), "%")
	out.info("  address by a redirection (302, no bytes)", page(&c.redirected), "%")
	out.info("  hit ratio of the CDN, pages", 100*sum(&c.hit)/max(1, sum(&c.hit, &c.stored, &c.missed)), "%")
	out.info("  requests to functions of any kind, per page", page(&c.redirected, &c.missed, &c.other, &c.coverRedirected, &c.coverMissed), "%")
	out.info("  bytes to readers", sum(&c.bytes)/1e6, "MB")
	out.info("  bytes that media sent", float64(c.mediaBytes)/1e6, "MB")
}

func sum(all ...*atomic.Int64) (n float64) {
	for _, v := range all {
		n += float64(v.Load())
	}
	return n
}

// cdnTenant is a tenant with its books, the newest first.
type cdnTenant struct {
	name   string
	client *client
	tenant uuid.UUID
	lib    uuid.UUID
	books  []uuid.UUID
	made   int
}

func (e *cdnEdge) tenants(ctx context.Context) ([]*cdnTenant, error) {
	var all []*cdnTenant
	for name := range cdnReaders {
		t := &cdnTenant{name: name}
		c := &crowd{name: name}
		if err := e.s.seedTenant(ctx, c); err != nil {
			return nil, err
		}
		t.tenant, t.client = c.tenant, c.client
		if _, err := e.s.admin.Exec(ctx, "insert into library_root (tenant_id, path, bucket) values ($1, $2, $3)",
			t.tenant, e.s.books, e.s.bucket); err != nil {
			return nil, err
		}
		for range cdnBooks - 1 {
			if err := e.writeBook(t); err != nil {
				return nil, err
			}
		}
		var err error
		if t.lib, err = t.client.addLibrary(ctx, e.api, object{"name": name, "path": filepath.Join(e.s.books, name)}); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (e *cdnEdge) writeBook(t *cdnTenant) error {
	t.made++
	var entries []entry
	for n := range cdnPages {
		jpg, err := picture(600, 900, 36, 80, uint64(n))
		if err != nil {
			return err
		}
		one, err := newEntry(fmt.Sprintf("%03d.jpg", n), marked(jpg, t.made*1000+n), n%2 == 1)
		if err != nil {
			return err
		}
		entries = append(entries, one)
	}
	return writeComic(filepath.Join(e.s.books, t.name, "Series", fmt.Sprintf("Book %03d.cbz", t.made)), entries)
}

// addBook adds a book with a scan.
func (e *cdnEdge) addBook(ctx context.Context, t *cdnTenant) error {
	if err := e.writeBook(t); err != nil {
		return err
	}
	if err := t.client.call(ctx, "POST", e.api.url+"/api/v1/libraries/"+t.lib.String()+"/scan", nil, nil); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := e.s.admin.QueryRow(ctx, `select coalesce(array_agg(id order by key desc), '{}') from book
			where tenant_id = $1 and analyzed and page_count = $2 and fingerprint <> ''`, t.tenant, cdnPages).Scan(&t.books)
		switch {
		case err != nil:
			return err
		case len(t.books) == t.made:
			return nil
		case time.Since(began) > patience:
			return fmt.Errorf("%s: %d of %d books after %s", t.name, len(t.books), t.made, patience)
		}
	}
}

// evening simulates all readers of one evening.
func (e *cdnEdge) evening(ctx context.Context, tenants []*cdnTenant, plain bool, seed uint64) (*cdnCount, error) {
	c := &cdnCount{}
	before := e.media.bytes.Load()
	var all sync.WaitGroup
	errs := make(chan error, 100)
	n := 0
	for _, t := range tenants {
		for range cdnReaders[t.name] {
			n++
			r := &cdnReader{edge: e, tenant: t, plain: plain, count: c, form: cdnForms[n%len(cdnForms)], random: rand.New(rand.NewPCG(seed, uint64(n)))}
			all.Go(func() { errs <- r.read(ctx) })
		}
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return nil, err
		}
	}
	c.mediaBytes = e.media.bytes.Load() - before
	return c, nil
}

// signatures requests every cached URL without a signature and with a wrong one.
func (e *cdnEdge) signatures(ctx context.Context, out *report) error {
	refused, served := 0, 0
	var failure error
	e.seen.Range(func(key, _ any) bool {
		url := key.(string)
		path, query, _ := strings.Cut(url, "?")
		broken := strings.Replace(query, "Signature=", "Signature=A", 1)
		for _, u := range []string{path, path + "?" + broken, path + "?" + strings.Replace(query, "Key-Pair-Id=", "Key-Pair-Id=X", 1)} {
			a, err := e.get(ctx, u)
			if err != nil {
				failure = err
				return false
			}
			if a.status == 403 {
				refused++
			} else {
				served++
			}
		}
		return true
	})
	out.info("requests for cached pictures, badly signed", float64(refused+served), "")
	out.atMost("  of them answered with anything but 403", float64(served), 0, "")
	return failure
}
