package telemetry

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

type received struct {
	path, body string
	header     http.Header
}

// collector records requests, and responds with a status.
func collector(t *testing.T, status *int) (address string, got *[]received) {
	got = &[]received{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*got = append(*got, received{r.Method + " " + r.URL.Path, string(body), r.Header})
		if *status == 302 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(*status)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

func serve(t *testing.T, c Config) *testkit.Server {
	t.Helper()
	return testkit.Serve(t, func(a *httpapi.API, d *db.DB) { Routes(a, d, c) })
}

// send sends a raw body.
func send(t *testing.T, s *testkit.Server, c *testkit.Client, path, body string, header ...string) int {
	t.Helper()
	req, err := http.NewRequest("POST", s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header, req.Host = c.Header.Clone(), c.Host
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode == 200 && len(answer) > 0 {
		t.Errorf("%s: %s, %v", path, answer, err)
	}
	return res.StatusCode
}

func TestForward(t *testing.T) {
	t.Parallel()
	status := 200
	address, got := collector(t, &status)
	s := serve(t, Config{Endpoint: address + "/", SampleRatio: 0.5, ServiceName: "web"})
	me := s.User(t, "one", "reader")
	m := s.Anonymous(t, "one").Do("GET", "/api/v1/observability/config", nil).Want(200).Map()
	if len(m) != 4 || m["enabled"] != true || m["proxyPath"] != "/api/v1/observability/otlp" || m["sampleRatio"] != 0.5 || m["serviceName"] != "web" {
		t.Errorf("%v", m)
	}
	traces, metrics := m["proxyPath"].(string)+"/v1/traces", m["proxyPath"].(string)+"/v1/metrics"
	const body = `{"resource_spans": [], "resourceSpans" : []}`
	if n := send(t, s, me, traces, body, "Content-Type", "application/json; charset=utf-8", "Cookie", "auth_token=secret", "X-Forwarded-For", "10.0.0.1"); n != 200 {
		t.Errorf("status %d", n)
	}
	if n := send(t, s, me, metrics, "\x0a\x00\xff", "Content-Type", "application/x-protobuf", "Content-Encoding", "gzip"); n != 200 {
		t.Errorf("status %d", n)
	}
	if len(*got) != 2 {
		t.Fatalf("%v", *got)
	}
	first, second := (*got)[0], (*got)[1]
	if first.path != "POST /v1/traces" || first.body != body || first.header.Get("Content-Type") != "application/json" || second.path != "POST /v1/metrics" ||
		second.body != "\x0a\x00\xff" || second.header.Get("Content-Type") != "application/x-protobuf" || second.header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%v", *got)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Forwarded-For", "Forwarded", "Origin", "Referer"} {
		if v := first.header.Get(name); v != "" {
			t.Errorf("%s is passed on: %s", name, v)
		}
	}
	if ua := first.header.Get("User-Agent"); ua != "Longbox" {
		t.Errorf("User-Agent %s", ua)
	}
	*got = nil
	for _, c := range []struct {
		body, kind, encoding string
		want                 int
	}{{"x", "text/plain", "", 400}, {"x", "", "", 400}, {"x", "application/json", "br", 400}, {strings.Repeat("x", 4<<20+1), "application/json", "", 413}} {
		if n := send(t, s, me, traces, c.body, "Content-Type", c.kind, "Content-Encoding", c.encoding); n != c.want {
			t.Errorf("%.20s as %s: status %d, want %d", c.body, c.kind, n, c.want)
		}
	}
	if n := send(t, s, s.Anonymous(t, "one"), traces, "x", "Content-Type", "application/x-protobuf"); n != 401 {
		t.Errorf("anonymous: %d", n)
	}
	disabled := s.User(t, "one", "reader")
	s.DB.Exec(t, "update account set is_active = false where id = $1", disabled.ID)
	if n := send(t, s, disabled, traces, "x", "Content-Type", "application/x-protobuf"); n != 401 {
		t.Errorf("disabled: %d", n)
	}
	if len(*got) != 0 {
		t.Errorf("forwarded: %v", *got)
	}
	if n := send(t, s, me, traces, strings.Repeat("x", 4<<20-1), "Content-Type", "application/json"); n != 200 || len(*got) != 1 {
		t.Errorf("the largest body: status %d, %d forwarded", n, len(*got))
	}
	*got = nil
	for said, want := range map[int]int{202: 200, 400: 400, 302: 502, 401: 502, 404: 502, 429: 502, 500: 502, 503: 502} {
		status = said
		if n := send(t, s, me, traces, "x", "Content-Type", "application/x-protobuf"); n != want {
			t.Errorf("the collector says %d: status %d, want %d", said, n, want)
		}
	}
	if len(*got) != 8 { // it is sent nowhere else
		t.Errorf("%d requests", len(*got))
	}
}

func TestNoCollector(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{SampleRatio: 1, ServiceName: "web"})
	me := s.User(t, "one", "reader")
	m := me.Do("GET", "/api/v1/observability/config", nil).Want(200).Map()
	if len(m) != 4 || m["enabled"] != false || m["proxyPath"] != "" || m["sampleRatio"] != 0.0 || m["serviceName"] != "" {
		t.Errorf("web clients are told to send %v", m)
	}
	if m := me.Do("POST", "/api/v1/observability/otlp/v1/traces", "{}").Want(503).Map(); !strings.Contains(m["message"].(string), "OTEL_EXPORTER_OTLP_ENDPOINT") {
		t.Errorf("%v", m)
	}
	address := httptest.NewServer(http.NotFoundHandler())
	address.Close()
	gone := serve(t, Config{Endpoint: address.URL, SampleRatio: 1})
	gone.User(t, "one", "reader").Do("POST", "/api/v1/observability/otlp/v1/metrics", "{}").Want(502)
}

// A collector that does not respond times out.
func TestSilentCollector(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	f := newForwarder(Config{Endpoint: silent.URL})
	f.client.Timeout = 50 * time.Millisecond
	if err := f.send(t.Context(), "v1/traces", &Input{ContentType: "application/json", RawBody: []byte("{}")}); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Error(err)
	}
}

// While a collector is slow, few requests wait for it, each with a body in memory; more are refused at once, to be
// retried.
func TestSlowCollector(t *testing.T) {
	t.Parallel()
	come, answer := make(chan struct{}, 2*atOnce), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		come <- struct{}{}
		<-answer
	}))
	t.Cleanup(slow.Close)
	f := newForwarder(Config{Endpoint: slow.URL})
	in := &Input{ContentType: "application/json", RawBody: []byte("{}")}
	done := make(chan error, atOnce)
	for range atOnce {
		go func() { done <- f.send(t.Context(), "v1/traces", in) }()
	}
	for range atOnce {
		<-come
	}
	if e := fault.From(f.send(t.Context(), "v1/traces", in)); e.Code != fault.Unavailable || e.RetryAfter == 0 {
		t.Errorf("one more: %v", e)
	}
	close(answer)
	for range atOnce {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := f.send(t.Context(), "v1/traces", in); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// The collector's response is not passed on, not even its status text; nor is a password in its address.
func TestWordsOfTheCollector(t *testing.T) {
	t.Parallel()
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 500 <script>\x1b[2J\r\nContent-Type: text/html\r\nContent-Length: 3\r\nConnection: close\r\n\r\n<b>")
		c.Close()
	}))
	t.Cleanup(odd.Close)
	in := &Input{ContentType: "application/json", RawBody: []byte("{}")}
	if err := newForwarder(Config{Endpoint: odd.URL}).send(t.Context(), "v1/traces", in); err == nil || fault.From(err).Message != "The telemetry collector answers with status 500" {
		t.Errorf("%v", err)
	}
	odd.Close()
	f := newForwarder(Config{Endpoint: strings.Replace(odd.URL, "://", "://me:hidden@", 1)})
	if err := f.send(t.Context(), "v1/traces", in); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("%v", err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, ratio := range []float64{-0.1, 1.5, math.NaN(), math.Inf(1)} { // JSON can represent only the first two
		for _, endpoint := range []string{"http://c", ""} {
			if err := (Config{Endpoint: endpoint, SampleRatio: ratio}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "OTEL_TRACES_SAMPLER_ARG: ") {
				t.Errorf("%g: %v", ratio, err)
			}
		}
	}
	for _, address := range []string{"collector:4318", "ftp://c", "http://c?a=b", "http://c/otlp?", "http://c/#a", "http://"} {
		if err := (Config{Endpoint: address, SampleRatio: 1}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "OTEL_EXPORTER_OTLP_ENDPOINT: ") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := (Config{Endpoint: "https://c/otlp", SampleRatio: 0.1}).Validate(); err != nil {
		t.Error(err)
	}
}
