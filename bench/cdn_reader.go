package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// cdnCount counts the requests of an evening. For each page view, exactly one of browser, hit, stored and missed
// counts: where the image came from. redirected counts views with a request for the URL, reached those with any request
// to a function.
type cdnCount struct {
	pages, browser, hit, stored, missed, redirected, reached atomic.Int64
	covers, coverRedirected, coverMissed                     atomic.Int64
	other                                                    atomic.Int64 // lists and page URLs
	bytes                                                    atomic.Int64
	mediaBytes                                               int64
}

// cdnReader is one reader with a browser, which caches responses for the hour.
type cdnReader struct {
	edge   *cdnEdge
	tenant *cdnTenant
	plain  bool // does not use the URL template: each page is a redirect
	form   cdnForm
	random *rand.Rand
	count  *cdnCount

	redirects map[string]string
	images    map[string]bool
	addresses map[string]string
}

// turn is the change of the hour: all URLs change, so the browser's cache is useless.
func (r *cdnReader) turn() {
	r.redirects, r.images, r.addresses = map[string]string{}, map[string]bool{}, map[string]string{}
}

func (r *cdnReader) read(ctx context.Context) error {
	r.turn()
	left := slices.Clone(r.tenant.books)
	for range cdnReads {
		if err := r.list(ctx); err != nil {
			return err
		}
		at := r.pick(len(left))
		book := left[at].String()
		left = slices.Delete(left, at, at+1) // nobody reads a book twice in an evening
		if err := r.book(ctx, book); err != nil {
			return err
		}
		if r.random.IntN(100) < cdnAgain {
			r.turn()
			if err := r.book(ctx, book); err != nil {
				return err
			}
		}
	}
	return nil
}

// pick returns a rank below n by Zipf's law: the newest books are read most.
func (r *cdnReader) pick(n int) int {
	var sum float64
	for i := range n {
		sum += math.Pow(float64(i+1), -cdnZipf)
	}
	at := r.random.Float64() * sum
	for i := range n {
		if at -= math.Pow(float64(i+1), -cdnZipf); at < 0 {
			return i
		}
	}
	return n - 1
}

// list shows the books with their covers.
func (r *cdnReader) list(ctx context.Context) error {
	r.count.other.Add(1)
	if err := r.tenant.client.call(ctx, "GET", r.edge.api.url+"/api/v1/books?pageSize=50", nil, nil); err != nil {
		return err
	}
	for _, id := range r.tenant.books {
		r.count.covers.Add(1)
		to, redirected, err := r.follow(ctx, "/api/v1/books/"+id.String()+"/thumbnail")
		if err != nil {
			return err
		}
		from, err := r.image(ctx, to)
		if err != nil {
			return err
		}
		if redirected {
			r.count.coverRedirected.Add(1)
		}
		if from == "media" {
			r.count.coverMissed.Add(1)
		}
	}
	return nil
}

func (r *cdnReader) book(ctx context.Context, id string) error {
	for n := 1; n <= cdnPages; n++ {
		if err := r.page(ctx, id, n); err != nil {
			return err
		}
		if n > 1 && r.random.IntN(100) < cdnBack {
			if err := r.page(ctx, id, n-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// page views a page once and counts the source of the response.
func (r *cdnReader) page(ctx context.Context, id string, n int) error {
	r.count.pages.Add(1)
	to, redirected, err := r.address(ctx, id, n)
	if err != nil {
		return err
	}
	from, err := r.image(ctx, to)
	if err != nil {
		return err
	}
	which := map[string]*atomic.Int64{"browser": &r.count.browser, "cache": &r.count.hit, "bucket": &r.count.stored, "media": &r.count.missed}[from]
	if which == nil {
		return fmt.Errorf("the CDN answers from %q", from)
	}
	which.Add(1)
	if redirected {
		r.count.redirected.Add(1)
	}
	if redirected || from == "media" {
		r.count.reached.Add(1)
	}
	return nil
}

// address returns the URL of a page: from the template of the book, which costs one request per hour, or by redirect.
func (r *cdnReader) address(ctx context.Context, id string, n int) (to string, redirected bool, err error) {
	path := "/api/v1/books/" + id + "/pages/"
	if r.plain {
		path += strconv.Itoa(n)
		if r.form.width > 0 {
			path += fmt.Sprintf("?width=%d&format=%s", r.form.width, r.form.format)
		}
		return r.follow(ctx, path)
	}
	template, ok := r.addresses[id]
	if !ok {
		var a struct{ Original, Resized string }
		r.count.other.Add(1)
		if err := r.tenant.client.call(ctx, "GET", r.edge.function.url+path+"address", nil, &a); err != nil {
			return "", false, err
		}
		template = a.Original
		if r.form.width > 0 {
			template = a.Resized
		}
		r.addresses[id] = template
	}
	return strings.NewReplacer("{pageNumber}", strconv.Itoa(n), "{width}", strconv.Itoa(r.form.width),
		"{height}", "", "{format}", r.form.format).Replace(template), false, nil
}

// follow asks the function for the URL of an image, unless the browser has it.
func (r *cdnReader) follow(ctx context.Context, path string) (to string, asked bool, err error) {
	if to, ok := r.redirects[path]; ok {
		return to, false, nil
	}
	req, err := r.tenant.client.request(ctx, http.MethodGet, r.edge.function.url+path, nil)
	if err != nil {
		return "", false, err
	}
	a, err := r.edge.do(req)
	if err != nil {
		return "", false, err
	}
	if a.status != http.StatusFound || !strings.HasPrefix(a.header.Get("Cache-Control"), "private, max-age=") {
		return "", false, fmt.Errorf("%s answers %d, Cache-Control %q", path, a.status, a.header.Get("Cache-Control"))
	}
	to = a.header.Get("Location")
	r.redirects[path] = to
	return to, true, nil
}

// image loads an image and returns its source: browser, cache, bucket or media.
func (r *cdnReader) image(ctx context.Context, url string) (from string, err error) {
	if r.images[url] {
		return "browser", nil
	}
	a, err := r.edge.get(ctx, url)
	if err != nil {
		return "", err
	}
	if a.status != http.StatusOK || a.bytes == 0 {
		return "", fmt.Errorf("the CDN answers %d with %d bytes", a.status, a.bytes)
	}
	r.count.bytes.Add(a.bytes)
	r.images[url] = true
	r.edge.seen.Store(url, true)
	if a.header.Get("X-Cache") == "HIT" {
		return "cache", nil
	}
	return a.header.Get("X-Origin"), nil
}

type cdnAnswer struct {
	status int
	header http.Header
	bytes  int64
}

func (e *cdnEdge) get(ctx context.Context, url string) (cdnAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return cdnAnswer{}, err
	}
	return e.do(req)
}

// do does not follow redirects.
func (e *cdnEdge) do(req *http.Request) (cdnAnswer, error) {
	res, err := e.http.Transport.RoundTrip(req)
	if err != nil {
		return cdnAnswer{}, err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	return cdnAnswer{res.StatusCode, res.Header, n}, err
}
