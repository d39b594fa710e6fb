package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/events/redistest"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/ratelimit"
)

// basicGood is Basic with the user name and password that the routers of signedBy accept.
const basicGood = "Basic dXNlcjpnb29k"

// signedBy is a router that says which kind of credential it has accepted. The session token is "good".
func signedBy(c Config) *API {
	a := New(c, nil, nil, Identity{
		Tenant: func(context.Context, string) (Tenant, error) { return Tenant{Name: "one", Prefix: "komga"}, nil },
		Known: func(_ context.Context, c Credential) (*auth.Caller, error) {
			if c.Bearer != "good" && c.Password != "good" {
				return nil, errUnauthenticated
			}
			name := "token"
			if c.Basic {
				name = "password"
			}
			return &auth.Caller{AccountID: uuid.New(), Username: name, Entered: true}, nil // without a database
		},
	})
	for _, method := range []string{"GET", "POST"} {
		for _, path := range []string{"/api/v1/cover", "/opds/cover"} {
			a.Handle(Op{Method: method, Path: path, ID: method + path, Summary: "A cover", Tag: "Things", Permission: SignedIn, Cookie: method == "GET"},
				func(w http.ResponseWriter, r *http.Request) error {
					_, err := io.WriteString(w, auth.CallerOf(r.Context()).Username)
					return err
				})
		}
	}
	return a
}

// After a challenge below /opds, a browser sends the password with every request to the host, also with those that a
// page of another site causes. Such a page must not write.
func TestPagesOfOthersDoNotWrite(t *testing.T) {
	t.Parallel()
	a := signedBy(Config{CORSOrigins: []string{"https://read.example"}, TrustedProxies: 1})
	anywhere := signedBy(Config{CORSOrigins: []string{"*"}})
	for _, c := range []struct {
		api     *API
		method  string
		headers []string
		want    int
	}{
		{a, "POST", nil, 200}, // from an app
		{a, "POST", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{a, "POST", []string{"Sec-Fetch-Site", "none"}, 200},
		{a, "POST", []string{"Origin", "http://example.com"}, 200},
		{a, "POST", []string{"Origin", "https://one.example", "X-Forwarded-Host", "one.example"}, 200},
		{a, "POST", []string{"Origin", "https://read.example"}, 200},
		{a, "POST", []string{"Origin", "https://read.example", "Sec-Fetch-Site", "cross-site"}, 200},
		{a, "POST", []string{"Sec-Fetch-Site", "cross-site"}, 401},
		{a, "POST", []string{"Sec-Fetch-Site", "same-site"}, 401},
		{a, "POST", []string{"Origin", "https://evil.example"}, 401},
		{a, "POST", []string{"Origin", "null"}, 401},
		{a, "POST", []string{"Origin", "https://evil.example", "X-Api-Key", "good"}, 200}, // set by a script
		{a, "GET", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 200},
		{anywhere, "POST", []string{"Origin", "https://read.example"}, 401},
	} {
		if w := ask(c.api, c.method, "/api/v1/cover", append(c.headers, "Authorization", basicGood)...); w.Code != c.want {
			t.Errorf("%s with %q: %d, want %d", c.method, c.headers, w.Code, c.want)
		}
	}
}

// A browser also adds the password to what it loads by itself, such as images: there the session counts.
func TestSessionBeforeStoredPassword(t *testing.T) {
	t.Parallel()
	a := signedBy(Config{})
	for _, c := range []struct{ method, path, mode, cookie, want string }{
		{"GET", "/api/v1/cover", "no-cors", "good", "token"},
		{"HEAD", "/api/v1/cover", "no-cors", "good", ""},
		{"GET", "/api/v1/cover", "navigate", "good", "token"},
		{"GET", "/api/v1/cover", "", "good", "password"}, // from an app
		{"GET", "/api/v1/cover", "cors", "good", "password"},
		{"GET", "/api/v1/cover", "no-cors", "", "password"},
		{"GET", "/opds/cover", "navigate", "good", "password"}, // the browser asked for it there
		{"POST", "/api/v1/cover", "navigate", "good", "password"},
	} {
		w := ask(a, c.method, c.path, "Sec-Fetch-Mode", c.mode, "Cookie", SessionCookie+"="+c.cookie, "Authorization", basicGood)
		if w.Code != 200 || c.method != "HEAD" && w.Body.String() != c.want {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

// Requests to hosts without an active tenant are counted by address, too, and their responses tell the limit.
func TestRefusedHostsAreCounted(t *testing.T) {
	t.Parallel()
	limiter := ratelimit.New(redistest.Start(t).Client, slog.New(slog.DiscardHandler)).Patient(10 * time.Second)
	t.Cleanup(limiter.Close)
	identity := Identity{Tenant: func(_ context.Context, host string) (Tenant, error) {
		if host != "suspended.test" {
			return Tenant{}, fault.New(fault.NotFound, "There is no library server at this address")
		}
		return Tenant{Suspended: true}, nil
	}}
	serve := func(c Config) *API {
		a := New(c, nil, limiter, identity)
		a.Handle(Op{Method: "GET", Path: "/api/v1/things", ID: "getThings", Summary: "Things", Tag: "Things", Permission: Public},
			func(http.ResponseWriter, *http.Request) error { return nil })
		return a
	}
	for host, status := range map[string]int{"suspended.test": 403, "unknown.test": 404} {
		a, began, seen := serve(Config{RateLimit: true, TrustedProxies: 1}), time.Now(), map[int]int{}
		for range 60 {
			w := ask(a, "GET", "http://"+host+"/api/v1/things")
			seen[w.Code]++
			if h := w.Header(); h.Get("X-RateLimit-Limit") != "50" || h.Get("X-RateLimit-Remaining") == "" || h.Get("X-RateLimit-Reset") == "" ||
				(h.Get("Retry-After") != "") != (w.Code == 429) {
				t.Fatalf("%s: %d %v", host, w.Code, h)
			}
		}
		refilled := int(10 * time.Since(began).Seconds()) // on a slow machine
		if seen[status]+seen[429] != 60 || seen[status] < 50 || seen[status] > 51+refilled {
			t.Errorf("%s: %v", host, seen)
		}
		if w := ask(a, "GET", "http://"+host+"/api/v1/things", "X-Forwarded-For", "192.0.2.77"); w.Code != status {
			t.Errorf("%s, from another address: %d", host, w.Code)
		}
		if w := ask(serve(Config{}), "GET", "http://"+host+"/api/v1/things"); w.Code != status || w.Header().Get("X-RateLimit-Limit") != "" {
			t.Errorf("%s, without limit: %d %v", host, w.Code, w.Header())
		}
	}
}
