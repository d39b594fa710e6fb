// Package e2e_test drives the whole interface, wired as in the functions, against real services: the api and media
// routers behind one address, the worker's own runner, Postgres as the restricted role, Redis, and S3.
package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/domain/telemetry"
	"github.com/longbox/longbox/shared/domain/upload"
	"github.com/longbox/longbox/shared/platform/apidocs"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/platform/seal"
	"github.com/longbox/longbox/shared/testkit"
)

// system is a complete Longbox with the tenants "one" and "two". The bucket "books" is tenant one's folder /books.
type system struct {
	*testkit.Server
	t      testing.TB
	s3     *testkit.S3
	folder string // content of the bucket books
	// Of tasks if the tests run through the built functions, of objects if the store sends notifications.
	queues queue.Config
	api    *httpapi.API
	media  *httpapi.API
	cdn    *testkit.CDN
	config app.HTTPConfig
	system string      // URL of the database as the role that sees all tenants
	asks   plug.Config // the function plugin
	seal   seal.Config
	log    *log // of the built functions, if the tests run through them

	toAPI, toMedia http.Handler
}

// links are the connections to services that a test can replace.
type links struct {
	database func(url string) string
	redis    func(url string) string
	// DATABASE_CONNECT_TIMEOUT. Many concurrent tests connect slowly, so its default is long.
	connect time.Duration
	timeout time.Duration      // DATABASE_TIMEOUT, if it is not 5 s
	cdn     bool               // delivery by the CDN
	limited bool               // requests beyond the limits are refused
	store   *testkit.Announcer // has the bucket books, and notifies the worker of its objects
}

func newSystem(t testing.TB, l links) *system {
	t.Helper()
	d := testkit.DB(t)
	s, bucket := &system{t: t}, "books"
	if l.store != nil {
		s.s3, s.queues, bucket = l.store.S3, l.store.Queue, l.store.Bucket
	} else {
		s.s3 = testkit.StartS3(t, bucket)
	}
	s.folder = filepath.Join(s.s3.Dir, bucket)
	if programs != "" { // in this process the worker finds tasks in their table
		s.queues = withTasks(t, s.queues)
	}
	databaseURL, redisURL := d.AppURL, testkit.RedisURL(t)
	s.system = d.SystemURL
	if programs != "" { // as with RDS Proxy
		s.system = testkit.Pooler(t, s.system, 8)
	}
	switch {
	case l.database != nil:
		databaseURL = l.database(databaseURL)
	case programs != "":
		databaseURL = testkit.Pooler(t, databaseURL, 8)
	}
	if l.redis != nil {
		redisURL = l.redis(redisURL)
	}
	s.config = app.HTTPConfig{
		Config: app.Config{Database: db.Config{URL: databaseURL, MaxConns: 6, Timeout: cmp.Or(l.timeout, 5*time.Second), Connect: cmp.Or(l.connect, 5*time.Second)}, Blob: s.s3.Config,
			Events: events.Config{}, RedisURL: redisURL, Queue: s.queues},
		HTTP:      httpapi.Config{RateLimit: l.limited}, // in any case a request reads the access generation from Redis
		Auth:      auth.Config{SigningKey: base64.StdEncoding.EncodeToString(make([]byte, 32)), TokenLife: time.Hour},
		PublicURL: "http://localhost",
	}
	var err error
	var base *app.Base
	s.asks, s.seal = s.plugins(), seal.Config{Key: base64.StdEncoding.EncodeToString(make([]byte, 32))}
	documents := api.Config{HTTPConfig: s.config, Docs: apidocs.Config{Path: "/docs"},
		Uploads: upload.Config{MaxBytes: 1 << 30, SingleBytes: 8 << 20, Life: 5 * time.Minute},
		Plugins: s.asks, Seal: s.seal, Telemetry: telemetry.Config{Endpoint: collector(t)}}
	if s.api, base, err = api.New(documents); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	images := media.Config{HTTPConfig: s.config}
	if l.cdn {
		s.cdn = testkit.StartCDN(t, s.s3)
		images.CDN = s.cdn.Config
	}
	if s.media, base, err = media.New(images); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	s.toAPI, s.toMedia = s.api.Router, s.media.Router
	if programs != "" {
		s.toAPI, s.toMedia = s.functions(documents, images)
	}
	if l.cdn {
		s.cdn.Serve(s.toMedia)
	}
	srv := httptest.NewServer(http.HandlerFunc(s.route))
	t.Cleanup(srv.Close)
	s.Server = &testkit.Server{URL: srv.URL, DB: d, One: d.Tenant(t, "one"), Two: d.Tenant(t, "two"), Tokens: testkit.Tokens(t), API: s.api}
	s.exec("insert into library_root (tenant_id, path, bucket) values ($1, '/books', $2)", s.One, bucket)
	return s
}

// collector receives the telemetry of web clients.
func collector(t testing.TB) string {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// route sends a request to the function that has an operation for it, like the gateway.
func (s *system) route(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if s.media.Router.Match(chi.NewRouteContext(), method, r.URL.Path) && r.URL.Path != "/health" && r.URL.Path != "/api/v1/health" {
		s.toMedia.ServeHTTP(w, r)
		return
	}
	s.toAPI.ServeHTTP(w, r)
}

func (s *system) exec(sql string, args ...any) {
	s.t.Helper()
	s.DB.Exec(s.t, sql, args...)
}

// library creates a library of the folder sub below /books through the interface.
func (s *system) library(c *testkit.Client, name, sub string) uuid.UUID {
	s.t.Helper()
	var l struct{ ID uuid.UUID }
	c.Do("POST", "/api/v1/libraries", map[string]any{"name": name, "path": "/books" + sub, "bookStrategy": "metadata_first",
		"numberStrategy": "smart"}).Want(201).JSON(&l)
	return l.ID
}

type scanStatus struct {
	Status                               string
	FilesTotal, FilesProcessed           int64
	BooksFound, BooksUpdated, ErrorCount int64
	Errors                               []string
}

// scan runs the worker until a scan of the library has ended.
func (s *system) scan(c *testkit.Client, library uuid.UUID) scanStatus {
	s.t.Helper()
	return s.scanOf(c, library, "")
}

// scanOf is scan with a query, for a part of the library.
func (s *system) scanOf(c *testkit.Client, library uuid.UUID, query string) scanStatus {
	s.t.Helper()
	c.Do("POST", "/api/v1/libraries/"+library.String()+"/scan"+query, nil).Want(200)
	stop := s.work()
	var status scanStatus
	testkit.Eventually(s.t, 3*time.Minute, func() bool { // beside all other tests on a busy machine
		c.Do("GET", "/api/v1/libraries/"+library.String()+"/scan-status", nil).Want(200).JSON(&status)
		return status.Status != "pending" && status.Status != "running"
	})
	stop()
	return status
}

// work runs the worker until stop is called.
func (s *system) work() (stop func()) {
	s.t.Helper()
	if programs != "" {
		return s.invoke(s.workerConfig())
	}
	return s.workHere(s.workerConfig())
}

func (s *system) workerConfig() worker.Config {
	return worker.Config{Config: s.config.Config, SystemURL: s.system, Slots: 2, Parallel: 4, Timeout: time.Minute, Covers: true, Poll: 100 * time.Millisecond,
		Lease: 30 * time.Second, Margin: time.Second, Plugins: s.asks, Seal: s.seal}
}

// workHere runs the worker in this process until stop is called.
func (s *system) workHere(c worker.Config) (stop func()) {
	runner, base, err := worker.New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		base.Close()
	}
}

type book struct {
	ID, SeriesID, LibraryID uuid.UUID
	Title, Path, FileFormat string
	Number                  *float64
	Volume                  *int32
	PageCount               int
	Analyzed                bool
	ReadingDirection        string
	AnalysisError           string // "" for null
}

type list[T any] struct {
	Data  []T
	Total int64
}

// books returns the books that the caller sees, by path below /books.
func (s *system) books(c *testkit.Client) map[string]book {
	s.t.Helper()
	var page list[book]
	c.Do("GET", "/api/v1/books?pageSize=500", nil).Want(200).JSON(&page)
	out := map[string]book{}
	for _, b := range page.Data {
		rel, err := filepath.Rel("/books", b.Path)
		if err != nil {
			s.t.Fatal(err)
		}
		out[rel] = b
	}
	return out
}

// plain neither requests compression nor undoes it, so that tests see what was sent.
var plain = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}

type answer struct {
	Status int
	Header http.Header
	Length int64 // as announced
	Body   []byte
}

// fetch sends a request as the client, with header lines "Name: value".
func (s *system) fetch(t testing.TB, c *testkit.Client, method, path string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Header = c.Host, c.Header.Clone()
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := plain.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, res.ContentLength, body}
}

// want fails the test unless the status is as given.
func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.Status != status {
		t.Fatalf("status %d, want %d: %.300s", a.Status, status, a.Body)
	}
	return a
}

// problem checks that a response is an error in the common form with the given status.
func (a answer) problem(t testing.TB, status int) {
	t.Helper()
	var p struct{ Error, Message string }
	if a.Status != status || json.NewDecoder(bytes.NewReader(a.Body)).Decode(&p) != nil || p.Error == "" || p.Message == "" {
		t.Errorf("status %d, want %d as an error: %.300s", a.Status, status, a.Body)
	}
}

func (s *system) as(role string) *testkit.Client { return s.User(s.t, "one", role) }
