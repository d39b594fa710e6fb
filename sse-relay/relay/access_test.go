package relay

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/sse-relay/rig"
)

func TestRefused(t *testing.T) {
	s := newStage(t, func(c *Config) { c.MaxConnections, c.MaxPerUser = 5, 2 })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	blind, account := s.account(tenant)
	account.Permissions = []string{"BooksRead", "TasksRead", "SystemAdmin"}
	s.api.Set(strings.TrimPrefix(blind, "Authorization: "), account)
	shape := func(body map[string]any, code string) {
		t.Helper()
		details, there := body["details"]
		if body["error"] != code || body["message"] == "" || !there || details != nil {
			t.Errorf("body %v, want the error %s with a message and details null", body, code)
		}
	}
	_, body := s.refused(401, "/api/v1/events/stream")
	shape(body, "Unauthorized")
	_, body = s.refused(401, "/api/v1/events/stream", "Authorization: Bearer nobody")
	shape(body, "Unauthorized")
	for _, name := range events.Topics {
		_, body = s.refused(403, "/api/v1/"+string(name)+"/stream", blind)
		shape(body, "Forbidden")
	}
	_, body = s.refused(404, "/api/v1/books/stream", token)
	shape(body, "NotFound")
	response, err := http.Post("http://"+s.addr+"/api/v1/events/stream", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 405 || response.Header.Get("Allow") != "GET" {
		t.Errorf("POST: %s, Allow %q", response.Status, response.Header.Get("Allow"))
	}

	s.open("/api/v1/events/stream", token)
	s.open("/api/v1/tasks/stream", token)
	c, body := s.refused(429, "/api/v1/scans/stream", token)
	if shape(body, "rate_limit_exceeded"); body["retry_after"] != 10. || c.Response.Header.Get("Retry-After") != "10" {
		t.Errorf("too many of a user: %v, %v", body, c.Response.Header)
	}
	for range 3 {
		other, _ := s.account(tenant)
		s.open("/api/v1/events/stream", other)
	}
	other, _ := s.account(tenant)
	c, body = s.refused(503, "/api/v1/events/stream", other)
	if shape(body, "ServiceUnavailable"); c.Response.Header.Get("Retry-After") == "" || fmt.Sprint(body["retry_after"]) != c.Response.Header.Get("Retry-After") {
		t.Errorf("a full relay: %v, Retry-After %q", body, c.Response.Header.Get("Retry-After"))
	}
	s.taken(5) // refused requests give theirs back
}

func TestUnusableAPI(t *testing.T) {
	s := newStage(t, func(c *Config) { c.APITimeout = 200 * time.Millisecond })
	token, _ := s.account(uuid.New())
	write := func(status int, media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.Header().Set("Retry-After", "77")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	many := fmt.Sprintf(`{"tenantId":%q,"userId":%q,"permissions":["LibrariesRead"%s]}`, uuid.New(), uuid.New(), strings.Repeat(`,"x"`, maxPermissions))
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		status  int
		retry   string
	}{
		"gateway error":    {write(502, "text/html", "<html>"), 503, "5"},
		"not JSON":         {write(200, "application/json", "<html>"), 503, "5"},
		"no tenant":        {write(200, "application/json", `{"userId":"`+uuid.NewString()+`"}`), 503, "5"},
		"bad tenant":       {write(200, "application/json", `{"tenantId":"../x","userId":"1"}`), 503, "5"},
		"many permissions": {write(200, "application/json", many), 503, "5"},
		"endless":          {write(200, "application/json", `{"tenantId":"`+strings.Repeat("x", 1<<17)), 503, "5"},
		"redirect":         {http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP, 503, "5"},
		"never":            {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 503, "5"},
		"its own 503":      {write(503, "application/json", `{"error":"ServiceUnavailable","message":"m","details":null}`), 503, "77"},
		"too many of them": {write(429, "application/json", `{"error":"rate_limit_exceeded","message":"m","retry_after":77}`), 429, "77"},
	} {
		s.api.Answer(test.handler)
		c, body := s.refused(test.status, "/api/v1/events/stream", token)
		if body["message"] == "" || c.Response.Header.Get("Retry-After") != test.retry {
			t.Errorf("%s: %v, Retry-After %q, want %q", name, body, c.Response.Header.Get("Retry-After"), test.retry)
		}
	}
	s.apiServer.Close()
	c, _ := s.refused(503, "/api/v1/events/stream", token)
	if c.Response.Header.Get("Retry-After") != "5" {
		t.Error("no Retry-After without an API")
	}
}

// A connection to the events stream is exempt from the rate limit. One to another stream counts once, and the response
// has the rate limit headers.
func TestConnectingCounts(t *testing.T) {
	s := newStage(t, nil)
	token, account := s.account(uuid.New())
	for i, test := range []struct{ stream, remaining string }{
		{"tasks", "199"}, {"events", ""}, {"tasks", "198"}, {"scans", "197"}, {"events", ""}, {"scans", "196"},
	} {
		head := s.open("/api/v1/"+test.stream+"/stream", token).Response.Header
		limit, reset := "200", "0"
		if test.remaining == "" {
			limit, reset = "", ""
		}
		if head.Get("X-RateLimit-Limit") != limit || head.Get("X-RateLimit-Remaining") != test.remaining || head.Get("X-RateLimit-Reset") != reset {
			t.Errorf("%d, %s: %v, want %q to remain", i, test.stream, head, test.remaining)
		}
	}
	bare := strings.TrimPrefix(token, "Authorization: ")
	asked := s.api.Asked(bare)
	if err := s.publisher.ChangeAccess(t.Context(), account.Tenant); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API is asked again", func() bool { return s.api.Asked(bare) > asked })
	if left := s.open("/api/v1/tasks/stream", token).Response.Header.Get("X-RateLimit-Remaining"); left != "195" {
		t.Errorf("%s remain after the relay has asked on its own", left)
	}
}

// A user over the rate limit keeps open streams, and may open further events streams.
func TestTooManyRequestsLeaveEventsAlone(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessGrace, c.AccessInterval = 50*time.Millisecond, time.Minute })
	tenant := uuid.New()
	token, account := s.account(tenant)
	open := s.open("/api/v1/events/stream", token)
	s.api.Answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("stream") == "events" {
			json.NewEncoder(w).Encode(map[string]any{"tenantId": tenant, "userId": account.User, "permissions": account.Permissions, "expiresAt": nil})
			return
		}
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":"rate_limit_exceeded","message":"m","retry_after":1}`)
	})
	for began := time.Now(); time.Since(began) < 6*s.cfg.AccessGrace; {
		if c, _ := s.refused(429, "/api/v1/tasks/stream", token); c.Response.Header.Get("X-RateLimit-Remaining") != "0" {
			t.Errorf("429: %v", c.Response.Header)
		}
	}
	s.publish(tenant, numbered("n", 1))
	s.expect(open, "n")
	if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil { // what is remembered will not do any more
		t.Fatal(err)
	}
	s.open("/api/v1/events/stream", token)
	s.publish(tenant, numbered("n", 2))
	s.expect(open, "n")
}

func TestCredentialsAreForwarded(t *testing.T) {
	s := newStage(t, nil)
	account := rig.Reader(uuid.New())
	for _, line := range []string{"Authorization: Bearer a", "Authorization: Basic dTpw", "X-API-Key: lbx_1_2", "Cookie: session=1"} {
		_, value, _ := strings.Cut(line, ": ")
		s.api.Set(value, account)
		s.open("/api/v1/events/stream", "Host: acme.example.org", line, "X-Forwarded-Host: front.example.org", "X-Forwarded-For: 192.0.2.7, 10.0.0.1")
		got := s.api.Last()
		if got.Host != "acme.example.org" || got.Header.Get("X-Forwarded-Host") != "front.example.org" || got.Header.Get("X-Forwarded-For") != "192.0.2.7, 10.0.0.1" {
			t.Errorf("%s: host %q, header %v", line, got.Host, got.Header)
		}
	}
	s.api.Set("Bearer b", account)
	s.open("/api/v1/events/stream", "Host: acme.example.org", "Authorization: Bearer b")
	if got := s.api.Last(); got.Header.Get("X-Forwarded-For") != "127.0.0.1" || got.Header.Get("X-Forwarded-Host") != "acme.example.org" {
		t.Errorf("without a proxy: header %v", got.Header)
	}
}

func TestOriginSecretIsShown(t *testing.T) {
	secret := strings.Repeat("new", 11)
	s := newStage(t, func(c *Config) { c.OriginSecret = []string{secret, strings.Repeat("old", 11)} })
	s.api.Set("Bearer a", rig.Reader(uuid.New()))
	s.open("/api/v1/events/stream", "Authorization: Bearer a", "X-Origin-Secret: of a client")
	if got := s.api.Last().Header.Values("X-Origin-Secret"); len(got) != 1 || got[0] != secret {
		t.Errorf("the api was shown %q", got)
	}
}

func TestSameTokenOnAnotherHostIsAskedAnew(t *testing.T) {
	for _, header := range []string{"Host", "X-Forwarded-Host"} {
		t.Run(header, func(t *testing.T) {
			s := newStage(t, nil)
			one, two := rig.Reader(uuid.New()), rig.Reader(uuid.New())
			s.api.Answer(func(w http.ResponseWriter, r *http.Request) {
				account := one
				if r.Header.Get("X-Forwarded-Host") == "two.test" {
					account = two
				}
				json.NewEncoder(w).Encode(map[string]any{"tenantId": account.Tenant, "userId": account.User, "permissions": account.Permissions, "expiresAt": nil})
			})
			first := s.open("/api/v1/events/stream", header+": one.test", "Authorization: Bearer x")
			second := s.open("/api/v1/events/stream", header+": two.test", "Authorization: Bearer x")
			s.publish(two.Tenant, numbered("two", 2))
			s.publish(one.Tenant, numbered("one", 1))
			s.expect(first, "one")
			s.expect(second, "two")
		})
	}
}

// Credentials of the same kind with other values belong to other users.
func TestEachCredentialIsItsOwn(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	for _, kind := range []string{"Authorization: Bearer ", "X-API-Key: ", "Cookie: auth_token="} {
		var clients []*rig.Client
		for _, secret := range []string{"a", "b"} {
			account := rig.Reader(tenant)
			_, token, _ := strings.Cut(kind+secret, ": ")
			s.api.Set(token, account)
			clients = append(clients, s.open("/api/v1/events/stream", kind+secret))
			s.publish(tenant, events.Event{Topic: events.Entities, Kind: "mine", UserID: account.User.String(), Data: secret})
		}
		for i, want := range []string{`"a"`, `"b"`} {
			if b := s.expect(clients[i], "mine"); b.Data != want {
				t.Errorf("%s: %s is told %s", kind, want, b.Data)
			}
		}
	}
}

// A refusal ends streams only if it says that the credential is invalid.
func TestLastingRefusals(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{400: true, 401: true, 403: true, 404: true, 408: false, 429: false, 500: false, 503: false} {
		if got := (&refusal{status: status}).lasting(); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}

func TestAnswersAreCachedUntilAccessChanges(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	bare := strings.TrimPrefix(token, "Authorization: ")
	for range 5 {
		s.open("/api/v1/events/stream", token)
	}
	if n := s.api.Asked(bare); n != 2 { // the first answer tells which tenant's generation to read
		t.Errorf("asked %d times for five streams, want 2", n)
	}
	if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API is asked again", func() bool { return s.api.Asked(bare) == 3 })
	for range 5 {
		s.open("/api/v1/events/stream", token)
	}
	if n := s.api.Asked(bare); n > 4 { // the relay may not have had the third answer yet
		t.Errorf("asked %d times, want 3, or once more: once for all connections of the credential", n)
	}
}

// What a client sent may be as long as a request header and differ each time. For clients that have left, the relay
// keeps only what it needs to recognise them.
func TestWhatIsKeptOfThoseWhoLeft(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessInterval = time.Minute })
	account := rig.Reader(uuid.New())
	long := strings.Repeat("x", 20_000)
	connect := func(i int) *rig.Client {
		cookie := fmt.Sprintf("auth_token=a; %s=%d", long, i)
		s.api.Set(cookie, account)
		return s.open("/api/v1/events/stream", "Cookie: "+cookie)
	}
	const count = 40
	for i := range count {
		connect(i).Close()
	}
	stays := connect(count)
	eventually(t, "the others have left", func() bool { return s.server.limits.open() == 1 })
	access, known, bytes := s.server.access, 0, 0
	access.mu.Lock()
	for _, g := range access.grants {
		known++
		bytes += len(g.credential.cookie) + len(g.credential.forwardedFor)
	}
	access.mu.Unlock()
	if known != count+1 || bytes > 2*len(long) {
		t.Errorf("%d bytes are kept of %d who connected, want no more than of the one who stayed", bytes, known)
	}
	connect(0).Close() // known by its key
	if n := s.api.Asked(fmt.Sprintf("auth_token=a; %s=0", long)); n > 2 {
		t.Errorf("asked %d times about the first", n)
	}
	s.api.Remove(fmt.Sprintf("auth_token=a; %s=%d", long, count))
	if err := s.publisher.ChangeAccess(t.Context(), account.Tenant); err != nil {
		t.Fatal(err)
	}
	s.ended(stays, 5*time.Second)
}

// A starting connection holds a grant only while it is cached and valid. Otherwise nothing would check the grant again,
// and a stream could outlive its access. A grant that is unconfirmed, or was confirmed long ago, is doubtful.
func TestGrantIsHeldOrDoubtful(t *testing.T) {
	t.Parallel()
	a := newAccess(Config{AccessMaxAge: time.Minute, AccessGrace: time.Hour}, nil, slog.New(slog.DiscardHandler))
	said := answer{TenantID: uuid.New(), UserID: uuid.New(), Permissions: []string{requiredPermission}}
	for name, test := range map[string]struct {
		change         func(g *grant)
		held, doubtful bool
	}{
		"good":        {func(*grant) {}, true, false},
		"forgotten":   {a.forget, false, false},
		"revoked":     {a.revoke, false, false},
		"expired":     {func(g *grant) { g.expires.Store(1) }, false, false},
		"not told":    {func(g *grant) { a.deny(g.key, time.Now(), errUnavailable) }, true, true},
		"of long ago": {func(g *grant) { g.asked = time.Now().Add(-time.Hour) }, true, true},
		"changed":     {func(g *grant) { g.generation = "other" }, true, true},
	} {
		g := a.record([sha256.Size]byte{}, said, "one", time.Now())
		test.change(g)
		if held, doubtful := a.hold(g, credential{}), a.doubtful(g, "one"); held != test.held || doubtful != test.doubtful {
			t.Errorf("%s: held %v, doubtful %v", name, held, doubtful)
		}
		a.revoke(g)
	}
}

// A grant with connections is kept, however long ago they were opened: nobody would review it otherwise.
func TestGrantsWithConnectionsAreKept(t *testing.T) {
	t.Parallel()
	a := newAccess(Config{}, nil, slog.New(slog.DiscardHandler))
	tenant := uuid.New()
	g := a.record([sha256.Size]byte{}, answer{TenantID: tenant, UserID: uuid.New()}, "one", time.Now())
	a.hold(g, credential{})
	g.used = time.Now().Add(-2 * idleGrants)
	if a.dueAll(); len(a.owners[tenant]) != 1 || a.grants[g.key] != g {
		t.Error("a grant with a connection was forgotten")
	}
	a.release(g)
	if a.dueAll(); len(a.owners[tenant]) != 0 || len(a.grants) != 0 {
		t.Error("a grant without connections is kept")
	}
}

// Of two answers of the API, the one to the later request counts, in any order of arrival.
func TestOlderAnswerIsVoid(t *testing.T) {
	t.Parallel()
	a := newAccess(Config{}, nil, slog.New(slog.DiscardHandler))
	said, now := answer{TenantID: uuid.New(), UserID: uuid.New()}, time.Now()
	g := a.record([sha256.Size]byte{}, said, "new", now)
	said.Permissions = []string{requiredPermission}
	a.record(g.key, said, "old", now.Add(-time.Second))
	a.deny(g.key, now.Add(-time.Second), &refusal{status: http.StatusUnauthorized})
	if g.permissions.Load().has(requiredPermission) || g.generation != "new" || !a.hold(g, credential{}) {
		t.Errorf("an older answer counts: %v of generation %s", g.permissions.Load().names, g.generation)
	}
}

func TestCachedAnswerIsVoidAfterAChange(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	s.open("/api/v1/events/stream", token)
	s.api.Remove(strings.TrimPrefix(token, "Authorization: "))
	s.redis.Client.Set(t.Context(), events.GenerationKey(tenant), "other", 0) // no message: the relay must look
	s.refused(401, "/api/v1/events/stream", token)
}

func TestConcurrentConnectsAskOnce(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	warm, _ := s.account(tenant)
	s.open("/api/v1/events/stream", warm)
	token, _ := s.account(tenant)
	var group sync.WaitGroup
	for range 30 {
		group.Go(func() {
			c, err := rig.Open(s.addr, "/api/v1/events/stream", token)
			if err != nil || c.Response.StatusCode != 200 {
				t.Errorf("%+v, %v", c, err)
				return
			}
			t.Cleanup(func() { c.Close() })
		})
	}
	group.Wait()
	if n := s.api.Asked(strings.TrimPrefix(token, "Authorization: ")); n > 3 {
		t.Errorf("asked %d times for 30 streams at once", n)
	}
}

func TestRevoked(t *testing.T) {
	type change func(s *stage, token string, account rig.Account)
	remove := func(s *stage, token string, _ rig.Account) { s.api.Remove(token) }
	for name, test := range map[string]struct {
		change  change
		message bool
	}{
		"removed":                {remove, true},
		"permission lost":        {func(s *stage, token string, a rig.Account) { a.Permissions = nil; s.api.Set(token, a) }, true},
		"another tenant's":       {func(s *stage, token string, a rig.Account) { a.Tenant = uuid.New(); s.api.Set(token, a) }, true},
		"another user's":         {func(s *stage, token string, a rig.Account) { a.User = uuid.New(); s.api.Set(token, a) }, true},
		"the message is missing": {remove, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, func(c *Config) {
				if !test.message {
					c.AccessInterval = 300 * time.Millisecond // the message missing, the next look finds it
				}
			})
			tenant := uuid.New()
			token, account := s.account(tenant)
			staying, _ := s.account(tenant)
			var lost []*rig.Client
			for range 10 {
				lost = append(lost, s.open("/api/v1/events/stream", token))
			}
			keeps := s.open("/api/v1/events/stream", staying)
			test.change(s, strings.TrimPrefix(token, "Authorization: "), account)
			if test.message {
				if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil {
					t.Fatal(err)
				}
			} else {
				s.redis.Client.Set(t.Context(), events.GenerationKey(tenant), "other", 0)
			}
			began := time.Now()
			for _, c := range lost {
				s.ended(c, 10*time.Second)
			}
			t.Logf("all ended after %s", time.Since(began))
			s.publish(tenant, numbered("still", 1))
			s.expect(keeps, "still")
		})
	}
}

// TestRevokedWhileAsking changes the access after the API has decided and before it has answered.
func TestRevokedWhileAsking(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	warm, _ := s.account(tenant)
	s.open("/api/v1/events/stream", warm)
	token, account := s.account(tenant)
	asked := 0
	s.api.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == strings.TrimPrefix(warm, "Authorization: ") {
			http.Error(w, "not now", http.StatusBadGateway)
			return
		}
		if asked++; asked > 1 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"Unauthorized","message":"gone","details":null}`)
			return
		}
		s.redis.Client.Set(r.Context(), events.GenerationKey(tenant), "other", 0)
		json.NewEncoder(w).Encode(map[string]any{"tenantId": account.Tenant, "userId": account.User, "permissions": account.Permissions, "expiresAt": nil})
	})
	s.refused(401, "/api/v1/events/stream", token)
}

func TestPermissionOfEventsLost(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, account := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	s.publish(tenant, events.BookCreated(events.Book{}))
	s.expect(c, "book_created")
	account.Permissions = []string{"LibrariesRead"}
	s.api.Set(strings.TrimPrefix(token, "Authorization: "), account)
	if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the relay knows", func() bool {
		s.server.access.mu.Lock()
		defer s.server.access.mu.Unlock()
		for g := range s.server.access.owners[tenant] {
			if slices.Equal(g.permissions.Load().names, account.Permissions) {
				return true
			}
		}
		return false
	})
	s.publish(tenant, events.BookCreated(events.Book{}), events.LibraryUpdated(uuid.New()))
	s.expect(c, "library_updated")
}

func TestExpires(t *testing.T) {
	s := newStage(t, func(c *Config) { c.KeepAlive = 100 * time.Millisecond })
	tenant := uuid.New()
	token, account := s.account(tenant)
	bare := strings.TrimPrefix(token, "Authorization: ")
	account.Expires = time.Now().Add(3 * time.Second)
	s.api.Set(bare, account)
	c := s.open("/api/v1/events/stream", token)
	s.api.Remove(bare)
	s.ended(c, 8*time.Second)
	if early := time.Until(account.Expires); early > 0 {
		t.Errorf("the stream ended %s before the token expired", early)
	}
	s.refused(401, "/api/v1/events/stream", token)
}

// A key may end in the year 9999, which nanoseconds since 1970 do not reach.
func TestExpiresInAThousandYears(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, account := s.account(tenant)
	for _, year := range []int{2262, 2263, 2999, 9999} {
		account.Expires = time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC)
		s.api.Set(strings.TrimPrefix(token, "Authorization: "), account)
		if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		c := s.open("/api/v1/events/stream", token)
		s.publish(tenant, numbered("n", year))
		s.expect(c, "n")
	}
}

func TestUnconfirmedConnections(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessGrace = 1500 * time.Millisecond; c.APITimeout = 300 * time.Millisecond })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	change := func() {
		t.Helper()
		asked := s.api.Asked(strings.TrimPrefix(token, "Authorization: "))
		if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the API is asked", func() bool { return s.api.Asked(strings.TrimPrefix(token, "Authorization: ")) > asked })
	}
	s.api.Answer(down)
	change()
	s.publish(tenant, numbered("kept", 1)) // a short failure of the API closes nothing
	s.expect(c, "kept")
	s.api.Answer(nil)
	eventually(t, "the access is confirmed", func() bool {
		s.server.access.mu.Lock()
		defer s.server.access.mu.Unlock()
		for g := range s.server.access.owners[tenant] {
			return g.failing.IsZero()
		}
		return false
	})
	s.publish(tenant, numbered("confirmed", 1))
	s.expect(c, "confirmed")
	s.api.Answer(down)
	change()
	s.ended(c, 6*time.Second) // a long one does
}

// The API is asked once more after a change: the first time it may answer as before.
func TestChangeThatTheAPINoticesLate(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessInterval = time.Minute })
	a := s.server.access
	a.mu.Lock()
	a.settled = time.Second
	a.mu.Unlock()
	tenant := uuid.New()
	token, _ := s.account(tenant)
	bare := strings.TrimPrefix(token, "Authorization: ")
	c := s.open("/api/v1/events/stream", token)
	asked := s.api.Asked(bare)
	if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API is asked", func() bool { return s.api.Asked(bare) > asked })
	s.api.Remove(bare)
	s.ended(c, 10*time.Second)
}

// While Redis is away, every connection is checked at the API, time and again.
func TestRevokedWithoutRedis(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessInterval = 200 * time.Millisecond })
	token, _ := s.account(uuid.New())
	bare := strings.TrimPrefix(token, "Authorization: ")
	c := s.open("/api/v1/events/stream", token)
	s.redis.Stop(t)
	asked := s.api.Asked(bare)
	eventually(t, "the API is asked twice", func() bool { return s.api.Asked(bare) >= asked+2 })
	s.api.Remove(bare)
	s.ended(c, 10*time.Second)
}

// What the API said while Redis was away is checked again when Redis is back, even with no generation before and after.
func TestAdmittedWithoutRedis(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessInterval = time.Minute })
	tenant := uuid.New()
	known, _ := s.account(tenant)
	s.open("/api/v1/events/stream", known)
	s.redis.Stop(t)
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	s.api.Remove(strings.TrimPrefix(token, "Authorization: "))
	s.redis.Run(t)
	s.ended(c, 10*time.Second)
}
