package testkit

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit/bound"
)

// Credentials of the S3 gateways in tests.
const (
	s3Access = "longboxtest"
	s3Secret = "longboxtestsecret"
)

// S3 is a gateway with one folder per bucket, behind a counting proxy.
type S3 struct {
	Config  blob.Config
	Store   *blob.Store
	Dir     string // holds a folder for each bucket
	Counter *Counter
}

// StartS3 serves folders as buckets with the real gateway. The gateway does not write the library folders, so their
// objects have no ETags, as on one machine. With TEST_S3_ENDPOINT (and TEST_S3_ACCESS_KEY, TEST_S3_SECRET_KEY) it
// creates the buckets there instead; files in Dir are then no objects.
func StartS3(t testing.TB, buckets ...string) *S3 {
	t.Helper()
	return startS3(t, "", buckets...)
}

// startS3 is StartS3 with the address, or "", to which the gateway posts its notifications.
func startS3(t testing.TB, webhook string, buckets ...string) *S3 {
	t.Helper()
	os.Setenv("AWS_ACCESS_KEY_ID", cmp.Or(os.Getenv("TEST_S3_ACCESS_KEY"), s3Access))
	os.Setenv("AWS_SECRET_ACCESS_KEY", cmp.Or(os.Getenv("TEST_S3_SECRET_KEY"), s3Secret))
	dir, err := os.MkdirTemp("", "longbox-s3-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	for _, b := range append([]string{"../meta", "media"}, buckets...) {
		if err := os.MkdirAll(filepath.Join(data, b), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	endpoint, err := gateway(t, dir, webhook).address()
	if err != nil {
		t.Fatalf("S3 for tests: %v (run `make tools`, or set TEST_S3_ENDPOINT)", err)
	}
	c := newCounter(t, endpoint)
	cfg := blob.Config{LibraryEndpoint: c.URL, MediaEndpoint: c.URL, MediaBucket: "media", Region: "us-east-1", PathStyle: true}
	s := &S3{Config: cfg, Store: cfg.Library(), Dir: data, Counter: c}
	if os.Getenv("TEST_S3_ENDPOINT") != "" {
		s.makeBuckets(t, append(buckets, "media")...)
	}
	return s
}

func (s *S3) makeBuckets(t testing.TB, buckets ...string) {
	for _, b := range buckets {
		_, err := s.client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b})
		if err != nil && !errors.As(err, new(*types.BucketAlreadyOwnedByYou)) { // another test has created it
			t.Fatal(err)
		}
	}
}

// gateway serves the folders of dir/data. Its container sees them too, so files that tests write there are objects.
func gateway(t testing.TB, dir, webhook string) source {
	health := "/" + filepath.Base(dir) // another test's gateway, which may have taken the port, does not answer there
	arguments := func(port int) []string {
		return []string{"--port", "127.0.0.1:" + strconv.Itoa(port), "--access", s3Access, "--secret", s3Secret, "--region", "us-east-1",
			"--event-webhook-url", webhook, "--keep-alive", "--quiet", "--health", health, "posix", "--sidecar", filepath.Join(dir, "meta"),
			"--disable-object-lock-file", filepath.Join(dir, "data")}
	}
	return source{setting: "TEST_S3_ENDPOINT", program: gatewayBin,
		run: func(bin string) (string, error) {
			port, err := freePort()
			if err != nil {
				return "", err
			}
			// It holds nothing that must outlive the test.
			stop, err := bound.Start(exec.Command(bin, arguments(port)...), "KILL", dir)
			if err != nil {
				return "", err
			}
			t.Cleanup(stop)
			url, err := healthy(port, health)
			if err != nil {
				out, _ := os.ReadFile(filepath.Join(dir, "log"))
				return "", fmt.Errorf("%w: %s", err, out)
			}
			return url, nil
		},
		image: func() (string, error) {
			port, err := freePort()
			if err != nil {
				return "", err
			}
			_, stop, err := containerImage{name: "versity/versitygw:v1.8.0", port: strconv.Itoa(port), command: arguments(port), folder: dir}.start()
			if err != nil {
				return "", err
			}
			t.Cleanup(stop)
			return healthy(port, health)
		}}
}

// healthy waits until the gateway responds at a path and returns its address.
func healthy(port int, path string) (string, error) {
	url := "http://127.0.0.1:" + strconv.Itoa(port)
	return url, waitFor(15*time.Second, func() error {
		res, err := http.Get(url + path)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s%s answers %s", url, path, res.Status)
		}
		if res != nil {
			err = errors.Join(err, res.Body.Close())
		}
		return err
	})
}

// gatewayBin returns the gateway's program, in PATH or where `make test` installs it.
func gatewayBin() string {
	if p := onPath("versitygw")(); p != "" {
		return p
	}
	p := filepath.Join(root(), ".tools", "bin", "versitygw")
	if _, err := os.Stat(p); err != nil {
		return ""
	}
	return p
}

// root returns the folder of the repository: the nearest parent of the working directory with a go.mod.
func root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("no go.mod above " + start)
		}
	}
}

// Fixtures returns the folder of real works: FIXTURES, else shared/fixtures beside the repository. Without such a
// folder the test is skipped; it fails if FIXTURES names a missing one.
func Fixtures(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("FIXTURES")
	named := dir != ""
	if !named {
		dir = filepath.Join(root(), "..", "shared", "fixtures")
	}
	_, err := os.Stat(filepath.Join(dir, "library"))
	switch {
	case err != nil && named:
		t.Fatalf("FIXTURES must name a folder of real works: %v", err)
	case err != nil:
		t.Skip("no folder of real works: set FIXTURES to run this test")
	}
	return dir
}

// Counter counts the requests to an S3 endpoint.
type Counter struct {
	URL string

	mu       sync.Mutex
	requests []Request
	meddle   func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

// Request is a request that the Counter saw.
type Request struct {
	Method, Path, Query, Range string
	Bytes                      int64 // of the response
}

// newCounter puts a counting proxy in front of an endpoint.
func newCounter(t testing.TB, endpoint string) *Counter {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c := &Counter{}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 128
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host }, // the signature covers Host
		ModifyResponse: func(res *http.Response) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			r := res.Request
			c.requests = append(c.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Range"), max(0, res.ContentLength)})
			return nil
		},
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		meddle := c.meddle
		c.mu.Unlock()
		if meddle == nil {
			proxy.ServeHTTP(w, r)
			return
		}
		meddle(w, r, proxy)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that a test closes
	proxy.ErrorLog = srv.Config.ErrorLog
	srv.Start()
	t.Cleanup(srv.Close)
	c.URL = srv.URL
	return c
}

// Meddle makes f answer requests to the endpoint, or pass them to next; nil restores the normal behaviour.
func (c *Counter) Meddle(f func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meddle = f
}

var deletedKey = regexp.MustCompile(`<Key>([^<]*)</Key>`)

// Keep makes the store refuse to delete objects whose keys contain a text, like a lock or a policy. Other objects of a
// request are deleted.
func (s *S3) Keep(text string) {
	s.Counter.Meddle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodPost || !r.URL.Query().Has("delete") {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var refused strings.Builder
		for _, m := range deletedKey.FindAllStringSubmatch(string(body), -1) {
			if strings.Contains(m[1], text) {
				refused.WriteString("<Error>" + m[0] + "<Code>AccessDenied</Code><Message>the object is locked</Message></Error>")
			} else if err := os.Remove(filepath.Join(s.Dir, r.URL.Path, filepath.FromSlash(m[1]))); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		fmt.Fprintf(w, "<DeleteResult>%s</DeleteResult>", &refused)
	})
}

// CutAfter passes the first n bytes of a response body on. Then it calls then, which may panic with
// http.ErrAbortHandler to close the connection, and passes the rest on.
func CutAfter(w http.ResponseWriter, n int, then func()) http.ResponseWriter {
	return &cutting{ResponseWriter: w, left: n, then: then}
}

type cutting struct {
	http.ResponseWriter
	left int
	then func()
}

func (c *cutting) Write(p []byte) (int, error) {
	done := 0
	if c.then != nil && len(p) >= c.left {
		var err error
		if done, err = c.ResponseWriter.Write(p[:c.left]); err != nil {
			return done, err
		}
		if err := http.NewResponseController(c.ResponseWriter).Flush(); err != nil {
			return done, err
		}
		then := c.then
		c.then = nil
		then()
	}
	n, err := c.ResponseWriter.Write(p[done:])
	c.left -= n
	return done + n, err
}

// Reset clears the recorded requests and returns them.
func (c *Counter) Reset() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.requests
	c.requests = nil
	return out
}

// Objects returns the requests for objects, without listings, of a method.
func Objects(all []Request, method string) []Request {
	var out []Request
	for _, r := range all {
		if r.Method == method && !strings.Contains(r.Query, "list-type") {
			out = append(out, r)
		}
	}
	return out
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s %s (%d bytes)", r.Method, r.Path, r.Range, r.Bytes)
}
