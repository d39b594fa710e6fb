package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
)

// things is a router with one public list of 120 numbers.
func things(c Config) *API {
	a := New(c, nil, nil, Identity{Tenant: func(context.Context, string) (Tenant, error) { return Tenant{Name: "one"}, nil }})
	Register(a, Op{Method: "GET", Path: "/api/v1/things", ID: "listThings", Summary: "Things", Tag: "Things", Permission: Public},
		func(ctx context.Context, in *struct{ Paging }) (*Page[int], error) {
			return All(ctx, in.Paging, make([]int, 120)), nil
		})
	return a
}

func ask(a *API, method, url string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	a.Router.ServeHTTP(w, r)
	return w
}

func TestPageSizes(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	for query, want := range map[string]struct {
		size int
		self string
	}{
		"":                        {50, "?page=1&pageSize=50"},
		"?pageSize=0":             {50, "?page=1&pageSize=50"},
		"?pageSize=7":             {7, "?page=1&pageSize=7"},
		"?page_size=7&a=b":        {7, "?page=1&pageSize=7&a=b"},
		"?_=123&page_size=7":      {7, "?page=1&pageSize=7&_=123"},
		"?limit=7":                {7, "?page=1&pageSize=7"},
		"?limit=7&page=2":         {7, "?page=2&pageSize=7"},
		"?limit=7&pageSize=9":     {9, "?page=1&pageSize=9"},
		"?pageSize=501":           {500, "?page=1&pageSize=500"},
		"?unlimit=7&rate_limit=8": {50, "?page=1&pageSize=50&rateLimit=8&unlimit=7"},
	} {
		w := ask(a, "GET", "/api/v1/things"+query)
		var p Page[int]
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 200 {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
		if int(p.PageSize) != want.size || p.Total != 120 || len(p.Data) != min(want.size, 120) || p.Links.Self != "/api/v1/things"+want.self {
			t.Errorf("%q: %d of %d, self %s", query, len(p.Data), p.PageSize, p.Links.Self)
		}
	}
	for range 20 { // always the same of them
		var p Page[int]
		if err := json.Unmarshal(ask(a, "GET", "/api/v1/things?limit=7&page_size=9").Body.Bytes(), &p); err != nil || p.PageSize != 9 {
			t.Fatalf("limit=7 and page_size=9: %d, %v", p.PageSize, err)
		}
	}
	for n, want := range map[int]bool{700: true, 5000: false} {
		if w := ask(a, "GET", "/api/v1/things?a="+strings.Repeat("x", n)); w.Code != 200 || w.Header().Get("Link") != "" != want {
			t.Errorf("with a query of %d bytes: Link of %d bytes", n, len(w.Header().Get("Link")))
		}
	}
	for _, query := range []string{"?pageSize=-1", "?limit=-1", "?limit=x", "?page=0"} {
		if w := ask(a, "GET", "/api/v1/things"+query); w.Code != 400 {
			t.Errorf("%q: %d %s", query, w.Code, w.Body)
		}
	}
}

func TestHeadIsLikeGet(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	get, head := ask(a, "GET", "/api/v1/things"), ask(a, "HEAD", "/api/v1/things")
	if head.Code != 200 || head.Header().Get("Link") != get.Header().Get("Link") || head.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", head.Code, head.Header())
	}
	if w := ask(a, "HEAD", "/api/v1/things?page=0"); w.Code != 400 {
		t.Errorf("invalid: %d", w.Code)
	}
}

// A stale token does not keep anybody from a public operation, whatever its path and method.
func TestStaleTokenOnPublicOperations(t *testing.T) {
	t.Parallel()
	a := New(Config{}, nil, nil, Identity{
		Tenant: func(context.Context, string) (Tenant, error) { return Tenant{Name: "one"}, nil },
		Known:  func(context.Context, Credential) (*auth.Caller, error) { return nil, errUnauthenticated },
	})
	for _, path := range []string{"/api/v1/fixed", "/api/v1/of/{name}/end"} {
		a.Handle(Op{Method: "GET", Path: path, Permission: Public}, func(http.ResponseWriter, *http.Request) error { return nil })
	}
	for _, method := range []string{"GET", "HEAD"} {
		for path, want := range map[string]int{"/api/v1/fixed": 200, "/api/v1/of/one/end": 200, "/api/v1/other": 401} {
			if w := ask(a, method, path, "Authorization", "Bearer stale"); w.Code != want {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	if err := (Config{CORSOrigins: []string{"https://read.example/"}}).Validate(); err == nil || !strings.Contains(err.Error(), "CORS_ORIGINS") {
		t.Errorf("an origin with a slash at the end: %v", err)
	}
	a := things(Config{CORSOrigins: []string{"https://read.example"}})
	w := ask(a, "OPTIONS", "/api/v1/things", "Origin", "https://read.example", "Access-Control-Request-Method", "GET",
		"Access-Control-Request-Headers", "authorization, x-codex-device-id")
	h := w.Header()
	if w.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != "https://read.example" || h.Get("Access-Control-Allow-Credentials") != "true" {
		t.Errorf("preflight: %d %v", w.Code, h)
	}
	for _, name := range []string{"Authorization", "Content-Type", "X-API-Key", "X-Codex-Device-Id", "Range", "If-None-Match", "Last-Event-ID",
		"If-Range", "If-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		if !strings.Contains(", "+h.Get("Access-Control-Allow-Headers")+",", ", "+name+",") {
			t.Errorf("%s may not be sent: %s", name, h.Get("Access-Control-Allow-Headers"))
		}
	}
	h = ask(a, "GET", "/api/v1/things", "Origin", "https://read.example").Header()
	if h.Get("Access-Control-Allow-Origin") != "https://read.example" || h.Get("Vary") != "Origin" {
		t.Errorf("answer: %v", h)
	}
	// Without the last one, PDF.js requests no ranges.
	for _, name := range []string{"X-RateLimit-Limit", "Content-Range", "Accept-Ranges"} {
		if !strings.Contains(", "+h.Get("Access-Control-Expose-Headers")+",", ", "+name+",") {
			t.Errorf("%s may not be read: %s", name, h.Get("Access-Control-Expose-Headers"))
		}
	}
	for _, other := range []string{"https://other.example", ""} {
		if h := ask(a, "GET", "/api/v1/things", "Origin", other).Header(); h.Get("Access-Control-Allow-Origin") != "" || h.Get("Vary") != "Origin" {
			t.Errorf("from %q: %v", other, h)
		}
	}
	// A response that is the same for all origins can be cached once.
	for _, c := range []struct {
		origins []string
		allowed string
	}{{[]string{"*"}, "*"}, {nil, ""}} {
		for _, origin := range []string{"https://read.example", ""} {
			if h := ask(things(Config{CORSOrigins: c.origins}), "GET", "/api/v1/things", "Origin", origin).Header(); h.Get("Access-Control-Allow-Origin") != c.allowed || h.Get("Vary") != "" {
				t.Errorf("%v, from %q: %v", c.origins, origin, h)
			}
		}
	}
}

// An invalid input is named, with the same message wherever it is.
func TestWordsForWrongInput(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	Register(a, Op{Method: "POST", Path: "/api/v1/things/{id}", ID: "changeThing", Summary: "A thing", Tag: "Things", Permission: Public},
		func(context.Context, *struct {
			ID   uuid.UUID `path:"id" format:"uuid"`
			Of   string    `query:"of" format:"uuid"`
			From time.Time `query:"from"`
			Body struct {
				Since  time.Time   `json:"since,omitempty"`
				Other  uuid.UUID   `json:"other,omitempty" format:"uuid"`
				Others []uuid.UUID `json:"others,omitempty"`
				Number int32       `json:"number,omitempty" maximum:"2147483647" minimum:"-0.5"`
			}
		}) (*None, error) {
			return nil, nil
		})
	id := uuid.NewString()
	for _, c := range []struct{ path, body, want string }{
		{"x", `{}`, "id: must be a UUID"},
		{id[:35] + "x", `{}`, "id: must be a UUID"},
		{id + "?of=x", `{}`, "of: must be a UUID"},
		{id + "?from=2026-11-01", `{}`, "from: must be a time such as 2026-11-21T08:30:00Z"},
		{id, `{"since":"2026-11-01"}`, "since: must be a time such as 2026-11-21T08:30:00Z"},
		{id, `{"other":"x"}`, "other: must be a UUID"},
		{id, `{"others":["` + id + `","x"]}`, "others[1]: must be a UUID"},
		{id, `{"number":3e9}`, "number: expected number <= 2147483647"},
		{id, `{"number":-1}`, "number: expected number >= -0.5"},
	} {
		r := httptest.NewRequest("POST", "/api/v1/things/"+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.Router.ServeHTTP(w, r)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 400 || p.Message != c.want {
			t.Errorf("%s %s: %d %s, want %s", c.path, c.body, w.Code, w.Body, c.want)
		}
	}
}

// A list refuses an unknown filter: the unfiltered list would look like the result.
func TestUnknownFilters(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	type filtered struct {
		Paging
		Status string `query:"status"`
	}
	Register(a, Op{Method: "GET", Path: "/api/v1/filtered", ID: "listFiltered", Summary: "Things", Tag: "Things", Permission: Public},
		func(ctx context.Context, in *filtered) (*Page[int], error) { return All(ctx, in.Paging, []int{}), nil })
	Register(a, Op{Method: "GET", Path: "/api/v1/thing", ID: "getThing", Summary: "A thing", Tag: "Things", Permission: Public},
		func(context.Context, *struct{}) (*None, error) { return nil, nil })
	for path, want := range map[string]string{
		"filtered?status=x&page=1&v=17": "",
		"filtered?_=1&nothing":          "",
		"filtered?read_status=read":     "readStatus: has no effect",
		"filtered?genre=x":              "genre: has no effect",
		"filtered?include_deleted=true": "includeDeleted: has no effect",
		"filtered?includeDeleted=false": "",
		"filtered?status=x&status=y":    "status: is given 2 times",
		"filtered?status=&status=y":     "status: is given 2 times",
		"filtered?status=x&status=x":    "",
		"filtered?v=1&v=2&page=1":       "",
		"things?status=x":               "status: has no effect",
		"things?sort=name,desc":         "sort: has no effect",
		"things?library_id=x":           "libraryId: has no effect",
		"things?search=x":               "search: has no effect",
		"things?direction=desc":         "direction: has no effect",
		"things?sharing_tag_mode=deny":  "sharingTagMode: has no effect",
		"things?media_status=READY":     "mediaStatus: has no effect",
		"things?limit=5&offset=5":       "offset: has no effect",
		"things?limit=5&offset=0":       "",
		"things?deleted=true":           "deleted: has no effect",
		"things?deleted=false":          "",
		"things?title=":                 "",
		"things?title=&title=x":         "title: has no effect",
		"things?title=%zz":              "query: cannot be read",
		"things?page_size=1&a=%zz":      "query: cannot be read",
		"things?a;b":                    "query: cannot be read",
		"filtered?status=%00":           "status: contains the character NUL",
		"filtered?status=a%FF":          "status: contains the character NUL",
		"filtered?v=%00":                "",
		"thing?title=x":                 "",
		"thing?title=%zz":               "query: cannot be read",
	} {
		w := ask(a, "GET", "/api/v1/"+path)
		if bad := w.Code == 400; bad != (want != "") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want %q", path, w.Code, w.Body, want)
		}
	}
}

// Every parameter of a list is one that other lists refuse, unless it only changes how the list is shown.
func TestFiltersOfAllLists(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(raw, &api); err != nil {
		t.Fatal(err)
	}
	shown := []string{"page", "pageSize", "size", "unpaged", "full"}
	lists := 0
	for path, operations := range api.Paths {
		for method, o := range operations {
			var names []string
			for _, p := range o.Parameters {
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			if !slices.Contains(names, "page") {
				continue
			}
			lists++
			for _, name := range names {
				if !slices.Contains(shown, name) && !slices.Contains(filters, name) {
					t.Errorf("%s %s: other lists ignore %s; name it in filters", method, path, name)
				}
			}
		}
	}
	if lists < 100 {
		t.Errorf("%d lists", lists)
	}
}

// A method that a path does not have is not found, also on public paths.
func TestOtherMethods(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	Register(a, Op{Method: "GET", Path: "/health", ID: "health", Summary: "Health", Tag: "Health", Permission: Public},
		func(context.Context, *struct{}) (*None, error) { return nil, nil })
	for path, want := range map[string]int{"/health": 404, "/api/v1/things": 401} {
		if w := ask(a, "POST", path); w.Code != want {
			t.Errorf("POST %s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// The root URL tells that Longbox runs, and where to continue.
func TestAddressItself(t *testing.T) {
	t.Parallel()
	if w := ask(things(Config{}), "GET", "/"); w.Code != 404 || !strings.Contains(w.Body.String(), "interface at /api/v1") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestPathsAreUnescapedOnce(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	a.Handle(Op{Method: "GET", Path: "/api/v1/things/{name}/picture", ID: "getPicture", Summary: "A picture", Tag: "Things", Permission: Public},
		func(w http.ResponseWriter, r *http.Request) error {
			_, err := io.WriteString(w, PathParam(r, "name"))
			return err
		})
	for path, want := range map[string]string{"1": "1", "%31": "1", "%2531": "%31", "a%2Fb": "a/b", "a%20b": "a b", "%20%31": " 1"} {
		if w := ask(a, "GET", "/api/v1/things/"+path+"/picture"); w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", path, w.Code, w.Body, want)
		}
	}
}

// The error for an unacceptable body says what to send instead.
func TestWordsForWrongBodies(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	Register(a, Op{Method: "POST", Path: "/api/v1/things", ID: "makeThing", Summary: "A thing", Tag: "Things", Permission: Public},
		func(context.Context, *struct{ Body struct{ Name string } }) (*None, error) { return nil, nil })
	for _, c := range []struct{ kind, body, want string }{
		{"text/plain", `{"name":"x"}`, `"body: is of type text/plain; send JSON with Content-Type: application/json"`},
		{"application/json", "", `"body: is required: send JSON"`},
		{"application/json", `{"name":"` + strings.Repeat("x", 3<<20) + `"}`, `"The body is too large: the limit is `},
	} {
		r := httptest.NewRequest("POST", "/api/v1/things", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		w := httptest.NewRecorder()
		a.Router.ServeHTTP(w, r)
		if w.Code < 400 || w.Code >= 500 || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s of %d bytes: %d %s, want %s", c.kind, len(c.body), w.Code, w.Body, c.want)
		}
	}
}

// Media types ignore case and spaces, and the response is always JSON.
func TestNamesOfJSON(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	Register(a, Op{Method: "POST", Path: "/api/v1/things", ID: "makeThing", Summary: "A thing", Tag: "Things", Permission: Public},
		func(context.Context, *struct{ Body struct{ Name string } }) (*None, error) { return nil, nil })
	for kind, want := range map[string]int{"": 204, "Application/JSON": 204, "application/json ; charset=utf-8": 204, "application/merge-patch+json": 204,
		`application/json; profile="a+b"`: 204, "text/json": 400, "application/json+xml": 400} {
		r := httptest.NewRequest("POST", "/api/v1/things", strings.NewReader(`{"name":"x"}`))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if a.Router.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: %d %s, want %d", kind, w.Code, w.Body, want)
		}
	}
	for _, accept := range []string{"json", "text/html, */*;q=0.1"} {
		if w := ask(a, "GET", "/api/v1/things", "Accept", accept); w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("accepting %s: %s", accept, w.Header().Get("Content-Type"))
		}
	}
}

// The time limit for a body ends only requests that have one: without a body, the server already waits for the client's
// next request, and would take the limit for the client's end.
func TestNoBodyIsNotAwaited(t *testing.T) {
	t.Parallel()
	const patience = 100 * time.Millisecond
	a := things(Config{})
	op := Op{Method: "POST", Path: "/api/v1/things", ID: "makeThing", Summary: "A thing", Tag: "Things", Permission: Public}
	a.lazily(&op, func(api huma.API) {
		h := a.operation(&op, api)
		h.BodyReadTimeout = patience
		huma.Register(api, h, func(ctx context.Context, in *struct{ Body *struct{ Name string } }) (*struct{}, error) {
			select {
			case <-ctx.Done():
				t.Errorf("with %v: %v", in.Body, ctx.Err())
			case <-time.After(5 * patience):
			}
			return nil, nil
		})
	})
	server := httptest.NewServer(a.Router)
	defer server.Close()
	for _, body := range []string{"", `{"Name":"x"}`} {
		res, err := http.Post(server.URL+op.Path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusNoContent {
			t.Errorf("with %q: %s", body, res.Status)
		}
	}
	late, never := io.Pipe()
	defer never.Close()
	res, err := http.Post(server.URL+op.Path, "application/json", late)
	if err != nil {
		t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("with a body that does not come: %s", res.Status)
	}
}
