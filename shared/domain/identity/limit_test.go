package identity_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/domain/identity"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/ratelimit"
	"github.com/longbox/longbox/shared/platform/redisconn"
	"github.com/longbox/longbox/shared/testkit"
)

// limited returns the same client on a server that limits requests, behind one proxy.
func limited(t *testing.T, s *testkit.Server, c *testkit.Client) (*testkit.Client, *ratelimit.Limiter) {
	t.Helper()
	return limitedBy(t, testkit.Redis(t), s, c)
}

func limitedBy(t *testing.T, rdb redis.UniversalClient, s *testkit.Server, c *testkit.Client) (*testkit.Client, *ratelimit.Limiter) {
	t.Helper()
	id := identity.New(s.DB.App, s.Tokens)
	limiter := ratelimit.New(rdb, slog.Default()).Patient(10 * time.Second)
	t.Cleanup(limiter.Close)
	api := httpapi.New(httpapi.Config{RateLimit: true, TrustedProxies: 1}, s.DB.App, limiter, httpapi.Identity{
		Tenant: tenant.NewResolver(s.DB.App, tenant.Config{}).ByHost, Known: id.Known, Resolve: id.Resolve})
	routes(t)(api, s.DB.App)
	srv := httptest.NewServer(api.Router)
	t.Cleanup(srv.Close)
	return c.At(&testkit.Server{URL: srv.URL}), limiter
}

// An IPv6 client has a whole /64: changing the address within it does not evade the limit, nor does a forged forwarding
// header.
func TestOneNetworkIsOneClient(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	anyone, _ := limited(t, s, s.Anonymous(t, "one"))
	try := func(address string) int {
		return with(anyone, "X-Forwarded-For", address).Do("POST", "/api/v1/auth/register", `{"username":"","email":"","password":""}`).Status
	}
	for name, address := range map[string]func(i int) string{
		"IPv6":         func(i int) string { return fmt.Sprintf("2001:db8:0:1:%x::1", i) },
		"forged":       func(i int) string { return fmt.Sprintf("10.0.%d.1, 192.0.2.1", i%256) },
		"IPv4 as IPv6": func(i int) string { return []string{"192.0.2.2", "::ffff:192.0.2.2"}[i%2] },
	} {
		for i := 0; try(address(i)) != 429; i++ { // if Redis is slow on a busy machine, some are not counted
			if i == 300 {
				t.Fatalf("%s: never refused", name)
			}
		}
	}
	for i, path := range []string{"login", "register", "resend-verification"} { // each counts as a sign-in attempt
		client := with(anyone, "X-Forwarded-For", fmt.Sprintf("192.0.2.%d", 10+i))
		for n := 0; ; n++ {
			r := client.Do("POST", "/api/v1/auth/"+path, `{"username":"nobody","email":"","password":"x"}`)
			if r.Status == 429 && r.Header.Get("X-RateLimit-Limit") == "20" {
				break
			}
			if n == 100 {
				t.Fatalf("%s: %d after %d tries, %v", path, r.Status, n, r.Header)
			}
		}
	}
	for _, other := range []string{"2001:db8:0:2::1", "192.0.2.3"} {
		if got := try(other); got != 400 {
			t.Errorf("%s: %d", other, got)
		}
	}
}

// Password attempts count in the login's own bucket, whether by signing in or as a credential of another request.
func TestTryingPasswordsIsSlow(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	u, limiter := limited(t, s, s.User(t, "one", "reader"))
	known := basic(u, u.Name, testkit.Password)
	known.Do("GET", me, nil).Want(200)

	began := time.Now()
	tries, counted := 0, 0.0
	for status := 401; status != 429; tries++ {
		answered := limiter.Healthy()
		wrong := fmt.Sprintf("wrong password %d", tries)
		if tries%2 == 0 {
			status = basic(u, u.Name, wrong).Do("GET", me, nil).Status
		} else {
			status = u.Do("POST", "/api/v1/auth/login", map[string]string{"username": u.Name, "password": wrong}).Status
		}
		if answered && limiter.Healthy() { // otherwise Redis was too slow on a busy machine, and nothing was counted
			counted++
		}
		const burst, rate = 20, 0.2 // plus the refused one
		if status != 401 && status != 429 || counted > burst+1+rate*time.Since(began).Seconds() {
			t.Fatalf("try %d, of which %.0f were counted: %d", tries, counted, status)
		}
	}
	if tries < 15 {
		t.Errorf("only %d tries", tries)
	}
	r := basic(u, u.Name, "wrong again").Do("GET", me, nil).Want(429)
	if r.Header.Get("Retry-After") == "" || r.Map()["error"] != "rate_limit_exceeded" || r.Header.Get("X-RateLimit-Limit") != "20" ||
		r.Header.Get("X-RateLimit-Remaining") != "0" || r.Header.Get("X-RateLimit-Reset") == "0" {
		t.Errorf("429: %v %s", r.Header, r.Body)
	}
	// Requests with a cached credential, or with one that cannot be guessed, are not limited by it.
	known.Do("GET", me, nil).Want(200)
	u.Do("GET", me, nil).Want(200)
	_, key := newKey(t, u)
	basic(u, "any", key).Do("GET", me, nil).Want(200)
}

// Many concurrent attempts can keep the machine so busy that Redis times out; that must not switch the limit off:
// without Redis each process counts by itself.
func TestTryingPasswordsIsSlowWithoutRedis(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	options, err := redisconn.Options("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	gone := redis.NewClient(options)
	defer gone.Close()
	u, _ := limitedBy(t, gone, s, s.User(t, "one", "reader"))
	var r *testkit.Response
	tries := 0
	for r == nil || r.Status == 401 && tries < 60 {
		r = u.Do("POST", "/api/v1/auth/login", map[string]string{"username": u.Name, "password": fmt.Sprint("wrong password ", tries)})
		tries++
	}
	if tries < 21 || tries > 40 { // a slow machine refills some
		t.Errorf("refused at try %d, want 21", tries)
	}
	if r.Want(429); r.Header.Get("Retry-After") == "" || r.Header.Get("X-RateLimit-Limit") != "20" || r.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("429: %v", r.Header)
	}
	u.Do("GET", me, nil).Want(200) // known users are let in
}

// An app that loads many covers at once, with a password that is not cached, counts as one attempt.
func TestManyRequestsAtOnceAreOneAttempt(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	u, _ := limited(t, s, s.User(t, "one", "reader"))
	ask := func(password string, times, status int) {
		var group sync.WaitGroup
		for range times {
			group.Go(func() {
				if got := basic(u, u.Name, password).Do("GET", me, nil).Status; got != status {
					t.Errorf("%s: %d, want %d", password, got, status)
				}
			})
		}
		group.Wait()
	}
	bucket := fmt.Sprintf("lb:{%s}:rate:login:127.0.0.1", s.One)
	before := time.Now().Add(40 * time.Second).UnixMicro() // when it is full again: of its 20 tokens 12 are left
	if err := testkit.Redis(t).Set(t.Context(), bucket, before, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	ask(testkit.Password, 30, 200)
	full, err := testkit.Redis(t).Get(t.Context(), bucket).Int64()
	if err != nil {
		t.Fatal(err)
	}
	const attempt = 5 * time.Second
	if took := time.Duration(full-before) * time.Microsecond; took != attempt {
		t.Errorf("the bucket is full again %s later, want %s: one attempt", took, attempt)
	}
	ask("wrong password", 10, 401)
}

// A valid key that no process has cached yet, as after many start at once, counts for its user; an unknown key counts
// for the address, like anonymous requests.
func TestKeyThatIsNewToAll(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes(t))
	u := s.User(t, "one", "reader")
	_, key := newKey(t, u)
	limiter := ratelimit.New(testkit.Redis(t), slog.Default()).Patient(10 * time.Second)
	t.Cleanup(limiter.Close)
	id := identity.New(s.DB.App, s.Tokens)
	api := httpapi.New(httpapi.Config{RateLimit: true}, s.DB.App, limiter, httpapi.Identity{
		Tenant: tenant.NewResolver(s.DB.App, tenant.Config{}).ByHost, Resolve: id.Resolve,
		Known: func(context.Context, httpapi.Credential) (*auth.Caller, error) { return nil, nil }})
	routes(t)(api, s.DB.App)
	srv := httptest.NewServer(api.Router)
	t.Cleanup(srv.Close)
	at := s.Anonymous(t, "one").At(&testkit.Server{URL: srv.URL})
	ask := func(key string) *testkit.Response { return with(at, "X-Api-Key", key).Do("GET", me, nil) }
	for i := range 150 {
		if r := ask(key); r.Status != 200 {
			t.Fatalf("request %d: %d %s", i+1, r.Status, r.Body)
		}
	}
	if r := ask(key); r.Header.Get("X-RateLimit-Limit") != "200" {
		t.Errorf("counted as %v", r.Header)
	}
	wrong := key[:len(key)-4] + "0000"
	for i := 0; ; i++ { // if Redis is slow on a busy machine, some are not counted
		r := ask(wrong)
		if r.Status == 429 && r.Header.Get("X-RateLimit-Limit") == "50" {
			break
		}
		if r.Status != 401 || i == 300 {
			t.Fatalf("wrong key, request %d: %d %v", i+1, r.Status, r.Header)
		}
	}
}

// Apps made for Komga and for OPDS send each request first without a credential. An address whose anonymous requests
// are used up can still scroll through their covers; the interface's own paths refuse it.
func TestAppsThatWaitForTheChallenge(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	s.DB.Exec(t, "insert into setting (tenant_id, key, value) values ($1, 'komga_api.prefix', 'komga')", s.One)
	u, _ := limited(t, s, s.User(t, "one", "reader"))
	nobody, known := with(u, "Accept", "*/*"), basic(u, u.Name, testkit.Password)
	empty := func(kind string) {
		bucket := fmt.Sprintf("lb:{%s}:rate:%s:127.0.0.1", s.One, kind)
		if err := testkit.Redis(t).Set(t.Context(), bucket, time.Now().Add(time.Hour).UnixMicro(), time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}
	known.Do("GET", me, nil).Want(200) // the password is known from now on
	empty("ip")
	exhaust(t, me, func() *testkit.Response { return nobody.Do("GET", me, nil) })
	for _, path := range []string{"/komga/api/v1/libraries", "/opds", "/opds/v2"} {
		for range 60 {
			if r := nobody.Do("GET", path, nil).Want(401); r.Header.Get("X-RateLimit-Limit") != "200" {
				t.Fatalf("%s: counted as %v", path, r.Header)
			}
			known.Do("GET", path, nil).Want(200)
		}
	}
	empty("probe")
	for _, path := range []string{"/komga/api/v1/libraries", "/opds"} {
		exhaust(t, path, func() *testkit.Response { return nobody.Do("GET", path, nil) })
	}
	exhaust(t, "another prefix", func() *testkit.Response { return nobody.Do("GET", "/other/api/v1/libraries", nil) })
}

// Connections to the event stream do not count for the user, and are accepted even if the user has no requests left;
// anonymous ones count for the address.
func TestConnectingToEventsIsExempt(t *testing.T) {
	t.Parallel()
	const access = "/api/v1/auth/stream?stream="
	s := testkit.Serve(t)
	u, _ := limited(t, s, s.User(t, "one", "reader"))
	r := u.Do("GET", access+"events", nil).Want(200)
	if left := r.Header.Get("X-RateLimit-Remaining"); left != "" {
		t.Errorf("%s requests remain: want nothing said of the user's bucket", left)
	}
	bucket := fmt.Sprintf("lb:{%s}:rate:user:%s", s.One, u.ID)
	if n := testkit.Redis(t).Exists(t.Context(), bucket).Val(); n != 0 {
		t.Error("counted as a request of the user")
	}
	full := time.Now().Add(time.Hour).UnixMicro() // no requests are left until about then
	if err := testkit.Redis(t).Set(t.Context(), bucket, full, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{access + "tasks", access + "scans", access + "books", "/api/v1/auth/stream", me} {
		exhaust(t, path, func() *testkit.Response { return u.Do("GET", path, nil) })
	}
	u.Do("GET", access+"events", nil).Want(200)
	bucket = fmt.Sprintf("lb:{%s}:rate:events:%s", s.One, u.ID) // a bucket of its own, with a limit, too
	if err := testkit.Redis(t).Set(t.Context(), bucket, full, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	exhaust(t, "events", func() *testkit.Response { return u.Do("GET", access+"events", nil) })
	i := 0
	for name, c := range map[string]*testkit.Client{"nobody": with(u, "Accept", "*/*"), "forged": with(u, "Authorization", "Bearer forged"),
		"unknown key": with(u, "X-Api-Key", "lbx_0123456789abcdef_0123456789abcdef0123456789abcdef")} {
		i++
		c.Header.Set("X-Forwarded-For", fmt.Sprintf("192.0.2.%d", i))
		exhaust(t, name, func() *testkit.Response { return c.Do("GET", access+"events", nil) })
	}
}

// A tenant's limit counts all its users together, each request once, and affects nobody else.
func TestLimitOfATenant(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes(t))
	one := s.User(t, "one", "reader")
	_, key := newKey(t, one)
	s.DB.Exec(t, "update tenant set max_requests = 1 where id = $1", s.One)
	u, _ := limited(t, s, one)
	var err error = redis.Nil
	// On a busy machine the bucket may be full again, and deleted, before the test reads it.
	for i := 0; i < 20 && err == redis.Nil; i++ {
		var full int64
		with(u, "X-Api-Key", key).Do("GET", me, nil).Want(200) // is looked up, and counted for its user then
		full, err = testkit.Redis(t).Get(t.Context(), fmt.Sprintf("lb:{%s}:rate:tenant", s.One)).Int64()
		if in := time.Until(time.UnixMicro(full)); in > time.Second {
			t.Errorf("full again in %s: want a second for one request", in)
		}
	}
	if err != nil {
		t.Error(err)
	}
	other, _ := limited(t, s, s.User(t, "one", "reader")) // in another process
	for name, c := range map[string]*testkit.Client{"a user": u, "another": other, "nobody": with(u, "Accept", "*/*")} {
		r := c.Do("GET", me, nil)
		for i := 0; i < 300 && r.Status != 429; i++ { // if Redis is slow on a busy machine, some are not counted
			r = c.Do("GET", me, nil)
		}
		if r.Status != 429 || r.Header.Get("X-RateLimit-Limit") != "4" || r.Header.Get("Retry-After") == "" || !strings.Contains(string(r.Body), "all users") {
			t.Errorf("%s: %d %v %s", name, r.Status, r.Header, r.Body)
		}
	}
	theirs, _ := limited(t, s, s.User(t, "two", "reader"))
	theirs.Do("GET", me, nil).Want(200)
	// The relay still checks connections to the events stream, or it would close them.
	full := time.Now().Add(time.Hour).UnixMicro()
	if err := testkit.Redis(t).Set(t.Context(), fmt.Sprintf("lb:{%s}:rate:tenant", s.One), full, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	u.Do("GET", "/api/v1/auth/stream?stream=events", nil).Want(200)
}

// exhaust sends requests until one is refused; if Redis is slow on a busy machine, some are not counted.
func exhaust(t *testing.T, name string, ask func() *testkit.Response) {
	t.Helper()
	for range 300 {
		if ask().Status == 429 {
			return
		}
	}
	t.Errorf("%s: never refused", name)
}

// A host that has moved to another tenant does not keep the cached users of the previous one.
func TestHostThatChangesItsTenant(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t)
	id := identity.New(s.DB.App, s.Tokens)
	byHost := tenant.NewResolver(s.DB.App, tenant.Config{}).ByHost
	var confirmed atomic.Int32
	api := httpapi.New(httpapi.Config{}, s.DB.App, ratelimit.New(testkit.Redis(t), slog.Default()).Patient(10*time.Second), httpapi.Identity{
		Tenant: byHost, Known: id.Known, Resolve: id.Resolve,
		Confirm: func(ctx context.Context, _, _ string) (httpapi.Tenant, error) {
			confirmed.Add(1)
			return byHost(ctx, "two.test")
		}})
	routes(t)(api, s.DB.App)
	srv := httptest.NewServer(api.Router)
	t.Cleanup(srv.Close)
	one, two := s.User(t, "one", "reader"), s.User(t, "two", "reader")
	two.Host = one.Host
	for _, c := range []struct {
		as     *testkit.Client
		status int
	}{{one, 401}, {basic(one, one.Name, testkit.Password), 401}, {two, 200}} {
		before := confirmed.Load()
		got := c.as.At(&testkit.Server{URL: srv.URL}).Do("GET", me, nil)
		if confirmed.Load() == before {
			t.Error("the host was not confirmed")
		}
		got.Want(c.status)
	}
}
