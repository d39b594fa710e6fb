package lambdahttp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
)

var gateways = map[string]struct {
	gateway lambdakit.Gateway
	stage   lambdakit.Stage
	role    string
}{
	"HTTP API":         {lambdakit.HTTPAPI, "", "serve"},
	"HTTP API stage":   {lambdakit.HTTPAPI, "prod", "serve"},
	"REST API":         {lambdakit.RESTAPI, "", "serve"},
	"ALB":              {lambdakit.ALB, "", "serve"},
	"ALB single value": {lambdakit.ALBSingle, "", "serve"},
	"function URL":     {lambdakit.FunctionURL, "", "stream"},
}

// odd requests must arrive as they do at a server.
var odd = []struct {
	name, method, target string
	header               http.Header
	body                 []byte
	decoded              bool // the HTTP API cannot pass this path on as it was
	repeated             bool // needs a gateway that passes several values of one name
}{
	{name: "plain", method: "GET", target: "/api/v1/books"},
	{name: "repeated headers", method: "GET", target: "/x", header: http.Header{"X-List": {"a", "b, c"}, "Accept": {"text/html, */*;q=0.1"}}, repeated: true},
	{name: "a date", method: "GET", target: "/x", header: http.Header{"If-Range": {"Wed, 21 Oct 2026 07:28:00 GMT"}, "If-None-Match": {`"a,b", W/"c"`}}},
	{name: "cookies", method: "GET", target: "/x", header: http.Header{"Cookie": {"auth_token=a.b-c; other=1=2"}}},
	{name: "encoded path", method: "GET", target: "/a%20b/%E3%83%8F/c%2Bd+e", decoded: true},
	{name: "encoded slash", method: "GET", target: "/a%2Fb%3Fc%23d", decoded: true},
	{name: "percent", method: "GET", target: "/100%25/%2541"},
	{name: "double slash", method: "GET", target: "/a//b/"},
	{name: "query arrays", method: "GET", target: "/x?a=1&a=2&b=&c&d%5B%5D=x%26y&e=1+2&f=%E3%83%8F", repeated: true},
	{name: "query once", method: "GET", target: "/x?d%5B%5D=x%26y&e=1+2&f=%E3%83%8F&g=a%2Bb"},
	{name: "huge query", method: "GET", target: "/x?q=" + strings.Repeat("%20a", 2000)},
	{name: "JSON", method: "POST", target: "/x", header: http.Header{"Content-Type": {"application/json"}}, body: []byte(`{"a":"é\u0000<>&"}`)},
	{name: "binary body", method: "PUT", target: "/x", body: pattern(0, 100_000)},
	{name: "empty body", method: "DELETE", target: "/x"},
	{name: "large body", method: "POST", target: "/x", body: bytes.Repeat([]byte("text "), 400_000)},
	{name: "authorization", method: "GET", target: "/x", header: http.Header{"Authorization": {"Basic dXNlcjpwYXNzLHdvcmQ="}}},
	{name: "patch", method: "PATCH", target: "/x?", body: []byte("{}")},
}

func ask(t *testing.T, url, method, target string, h http.Header, body []byte) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(method, url+target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "one.example"
	maps.Copy(req.Header, h)
	res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, raw
}

func TestRequestsArriveWhole(t *testing.T) {
	t.Parallel()
	direct := httptest.NewServer(handler())
	t.Cleanup(direct.Close)
	for name, g := range gateways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &lambdakit.Front{Gateway: g.gateway, Stage: g.stage, Failed: func(err error) { t.Error(err) }}
			url, _ := front(t, f, g.role, time.Minute)
			for _, c := range odd {
				var want, got seen
				_, raw := ask(t, direct.URL, c.method, c.target, c.header, c.body)
				if err := json.Unmarshal(raw, &want); err != nil {
					t.Fatal(err)
				}
				if c.repeated && g.gateway == lambdakit.ALBSingle {
					continue
				}
				res, raw := ask(t, url, c.method, c.target, c.header, c.body)
				if err := json.Unmarshal(raw, &got); err != nil {
					t.Errorf("%s: status %d: %.300s", c.name, res.StatusCode, raw)
					continue
				}
				if got.Method != want.Method || got.Path != want.Path || got.Host != "one.example" || !got.TLS || !bytes.Equal(got.Body, want.Body) {
					t.Errorf("%s: %s %s at %s, TLS %t, %d bytes; want %s %s, %d bytes", c.name, got.Method, got.Path, got.Host, got.TLS, len(got.Body),
						want.Method, want.Path, len(want.Body))
				}
				if got.RawPath != want.RawPath && !(c.decoded && g.gateway == lambdakit.HTTPAPI) {
					t.Errorf("%s: raw path %q, want %q", c.name, got.RawPath, want.RawPath)
				}
				if !maps.EqualFunc(got.Query, want.Query, slices.Equal) {
					t.Errorf("%s: query %v, want %v", c.name, got.Query, want.Query)
				}
				for k, v := range want.Header {
					if a, b := strings.Join(got.Header[k], ","), strings.Join(v, ","); strings.ReplaceAll(a, " ", "") != strings.ReplaceAll(b, " ", "") {
						t.Errorf("%s: header %s: %q, want %q", c.name, k, a, b)
					}
				}
				if got.Remote != "127.0.0.1" || !strings.HasPrefix(got.ID, "00000000-0000-4000-8000-") {
					t.Errorf("%s: from %q, id %q", c.name, got.Remote, got.ID)
				}
				cookies := res.Header.Values("Set-Cookie")
				if g.gateway == lambdakit.ALBSingle {
					cookies = append([]string{"a=1; Path=/"}, cookies...) // it passes one
				}
				if len(cookies) != 2 || cookies[0] != "a=1; Path=/" || cookies[1] != "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT" {
					t.Errorf("%s: cookies %q", c.name, cookies)
				}
				if v := strings.ReplaceAll(strings.Join(res.Header.Values("Vary"), ","), " ", ""); v != "Origin,Accept" {
					t.Errorf("%s: Vary %q", c.name, v)
				}
			}
		})
	}
}

// The remote address is the peer that the gateway saw. The client's own claims come before it in the list.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	for name, g := range gateways {
		f := &lambdakit.Front{Gateway: g.gateway, Stage: g.stage, Failed: func(err error) { t.Error(err) }}
		url, _ := front(t, f, g.role, time.Minute)
		_, raw := ask(t, url, "GET", "/", http.Header{"X-Forwarded-For": {"1.2.3.4"}}, nil)
		var got seen
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %s", name, raw)
		}
		if got.Remote != "127.0.0.1" || strings.Join(got.Header["X-Forwarded-For"], ",") != "1.2.3.4, 127.0.0.1" {
			t.Errorf("%s: from %s, X-Forwarded-For %q", name, got.Remote, got.Header["X-Forwarded-For"])
		}
	}
}

func TestAnswersArriveWhole(t *testing.T) {
	t.Parallel()
	for name, g := range gateways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &lambdakit.Front{Gateway: g.gateway, Stage: g.stage, Failed: func(err error) { t.Error(err) }}
			url, out := front(t, f, g.role, time.Minute)
			res, raw := ask(t, url, "GET", "/bytes?n=3000000", nil, nil)
			if res.StatusCode != 200 || !bytes.Equal(raw, pattern(0, 3_000_000)) || res.Header.Get("Content-Type") != "application/octet-stream" {
				t.Errorf("status %d, %d bytes, %v", res.StatusCode, len(raw), res.Header)
			}
			if res, raw := ask(t, url, "GET", "/nothing", nil, nil); res.StatusCode != 200 || len(raw) != 0 {
				t.Errorf("nothing written: status %d: %s", res.StatusCode, raw)
			}
			for _, status := range []string{"201", "404", "429", "503"} {
				if res, _ := ask(t, url, "GET", "/", http.Header{"Want-Status": {status}}, nil); !strings.HasPrefix(res.Status, status) {
					t.Errorf("status %s, want %s", res.Status, status)
				}
			}
			for _, path := range []string{"/panic", "/nothing"} {
				res, raw := ask(t, url, "GET", path, nil, nil)
				if want := map[string]int{"/panic": 502, "/nothing": 200}[path]; res.StatusCode != want {
					t.Errorf("%s: status %d, want %d: %s", path, res.StatusCode, want, raw)
				}
				if path == "/panic" {
					// It may be read after the response.
					testkit.Eventually(t, 10*time.Second, func() bool { return out.count("on purpose") > 0 })
					if !strings.Contains(string(raw), `"error":"InternalServerError"`) || out.count("on purpose") != 1 {
						t.Errorf("a panic answers %s and is logged %d times", raw, out.count("on purpose"))
					}
				}
			}
			if n := len(f.Function.Inits()); n != 1 {
				t.Errorf("%d processes were needed", n)
			}
			// The last response is complete before after has run.
			testkit.Eventually(t, 10*time.Second, func() bool { return out.count("after\n") == 8 })
		})
	}
}
