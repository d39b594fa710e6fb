package e2e_test

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/redisconn"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/sse-relay/relay"

	"github.com/caarlos0/env/v11"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// obeyed is the maximum time until a suspension takes effect everywhere.
const obeyed = 10 * time.Second

// operator is what functions/operator works with, for this system.
func (s *system) operator(t testing.TB, redisURL string) func(args ...string) {
	t.Helper()
	options, err := redisconn.Options(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	o := &operator.Operator{System: s.DB.System, Redis: client, Events: events.New(client, events.Config{}, nil),
		Media: s.s3.Config.Media(), Bucket: s.s3.Config.MediaBucket, Temp: t.TempDir()}
	return func(args ...string) {
		t.Helper()
		if _, err := o.Run(context.Background(), args); err != nil {
			t.Fatalf("operator %v: %v", args, err)
		}
	}
}

// Every operation refuses a suspended tenant, for every caller, with the same clear response, from the next request on.
// Other tenants notice nothing.
func TestMatrixSuspended(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	run := m.operator(t, testkit.RedisURL(t))
	admin, theirs := m.as("admin"), m.User(t, "two", "admin")
	callers := []*testkit.Client{admin, m.Key(t, admin), m.Anonymous(t, "one"), m.as("reader")}
	names := map[string]string{}
	for _, op := range m.all() { // first, so that each operation would succeed
		if e := operations[op.ID]; e.name != nil {
			names[op.ID] = e.name(m, admin)
		}
	}
	page := "/api/v1/books/" + m.book.ID.String() + "/pages/1"
	for range 2 { // index, permit, tenant and credential are cached from here on
		m.fetch(t, admin, "GET", page).want(t, 200)
		admin.Do("GET", "/api/v1/books", nil).Want(200)
	}
	run("suspend", "one")
	// With the next request; but one passes if Redis answers it late.
	testkit.Eventually(t, obeyed, func() bool {
		return m.fetch(t, admin, "GET", page).Status == 403 && admin.Do("GET", "/api/v1/books", nil).Status == 403
	})
	calls := 0
	for _, op := range m.all() {
		for _, c := range callers {
			e := operations[op.ID]
			if op.ID == "refresh" {
				e.body = value(object{"refreshToken": "some"})
			}
			r := m.callNamed(op, e, c, names[op.ID])
			calls++
			if r.Status != 403 || !strings.Contains(string(r.Body), "suspended") || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: status %d, want 403: %.200s", op.ID, r.Status, r.Body)
			}
		}
	}
	theirs.Do("GET", "/api/v1/books", nil).Want(200)
	run("resume", "one")
	testkit.Eventually(t, obeyed, func() bool {
		return m.fetch(t, admin, "GET", page).Status == 200 && admin.Do("GET", "/api/v1/books", nil).Status == 200
	})
	t.Logf("%d calls of %d operations were all 403", calls, len(m.all()))
}

// Without Redis the processes get no event: they check again by themselves within their time.
func TestSuspendedWithoutRedis(t *testing.T) {
	t.Parallel()
	var l *link
	s := newSystem(t, links{redis: func(u string) string { var via string; l, via = newLink(t, u, false); return via }})
	run := s.operator(t, testkit.RedisURL(t))
	admin := s.as("admin")
	admin.Do("GET", "/api/v1/books", nil).Want(200)
	l.cut()
	admin.Do("GET", "/api/v1/books", nil).Want(200)
	began := time.Now()
	run("suspend", "one")
	testkit.Eventually(t, obeyed, func() bool { return admin.Do("GET", "/api/v1/books", nil).Status == 403 })
	t.Logf("refused after %s", time.Since(began))
}

// Streams of a suspended tenant are closed, and cannot be opened again.
func TestSuspendedStreams(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	run := s.operator(t, testkit.RedisURL(t))
	base := startRelay(t, s)
	ours, theirs := s.stream(t, base, s.as("reader")), s.stream(t, base, s.User(t, "two", "reader"))
	began := time.Now()
	run("suspend", "one")
	if _, open := until(ours, ""); open {
		t.Error("the stream is still open")
	}
	t.Logf("the stream ended after %s", time.Since(began))
	req := request(t, base, s.as("reader"))
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("a new stream: %s", res.Status)
	}
	if err := events.New(testkit.Redis(t), events.Config{Timeout: obeyed}, nil).Publish(t.Context(), s.Two, events.LibraryUpdated(uuid.New())); err != nil {
		t.Fatal(err)
	}
	if heard, _ := until(theirs, "event: library_updated"); !heard {
		t.Error("another tenant's stream ended, or says nothing")
	}
}

// until reads a stream up to a line, or to its end, within the time of a suspension. It reports whether the line came
// and whether the stream is still open.
func until(stream <-chan string, line string) (heard, open bool) {
	late := time.After(obeyed)
	for {
		select {
		case got, open := <-stream:
			if !open || line != "" && got == line {
				return open, open
			}
		case <-late:
			return false, true
		}
	}
}

// startRelay runs the relay in front of the system's api and returns its address.
func startRelay(t *testing.T, s *system) string {
	t.Helper()
	cfg, err := env.ParseAsWithOptions[relay.Config](env.Options{Environment: map[string]string{"API_URL": s.URL, "REDIS_URL": testkit.RedisURL(t)}})
	if err != nil {
		t.Fatal(err)
	}
	rdb, err := cfg.RedisClient()
	if err != nil {
		t.Fatal(err)
	}
	server, err := relay.New(cfg, rdb, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		rdb.Close()
	})
	return "http://" + l.Addr().String()
}

func request(t *testing.T, base string, c *testkit.Client) *http.Request {
	t.Helper()
	req, err := http.NewRequest("GET", base+"/api/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Header = c.Host, c.Header.Clone()
	return req
}

// stream opens an event stream and sends its lines. The channel is closed when the stream ends.
func (s *system) stream(t *testing.T, base string, c *testkit.Client) <-chan string {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(request(t, base, c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 {
		t.Fatalf("stream: %s", res.Status)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for read := bufio.NewScanner(res.Body); read.Scan(); {
			lines <- read.Text()
		}
	}()
	return lines
}
