package tenant_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// A client cannot cause a look-up with each request by changing the host. Cached hosts are answered meanwhile, and
// other addresses are not affected.
func TestLookupsAreLimited(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	d.Tenant(t, "one")
	a := httpapi.New(httpapi.Config{RateLimit: true, TrustedProxies: 1}, d.App, nil, httpapi.Identity{
		Tenant: tenant.NewResolver(d.App, tenant.Config{}).ByHost})
	a.Router.Get("/", func(http.ResponseWriter, *http.Request) {})
	get := func(address, host string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://"+host+"/", nil)
		r.Header.Set("X-Forwarded-For", address)
		a.Router.ServeHTTP(w, r)
		return w
	}
	if got := get("192.0.2.1", "one.test").Code; got != http.StatusOK {
		t.Fatal(got)
	}
	before, found := d.App.Pool().Stat().AcquireCount(), 0
	refused := get("192.0.2.1", "first.test")
	for n := 0; refused.Code != http.StatusTooManyRequests; n++ {
		if found++; refused.Code != http.StatusNotFound || n == 10_000 {
			t.Fatalf("request %d: %d", n, refused.Code)
		}
		refused = get("192.0.2.1", fmt.Sprintf("host-%d.test", n))
	}
	if asked := d.App.Pool().Stat().AcquireCount() - before; asked != int64(found) || found < 49 {
		t.Errorf("%d look-ups, %d hosts were looked for", asked, found)
	}
	if wait, err := strconv.Atoi(refused.Header().Get("Retry-After")); err != nil || wait < 1 || refused.Header().Get("X-RateLimit-Limit") != "50" {
		t.Errorf("%v", refused.Header())
	}
	if got := get("192.0.2.1", "one.test").Code; got != http.StatusOK {
		t.Errorf("a host that is cached: %d", got)
	}
	if got := get("192.0.2.2", "another.test").Code; got != http.StatusNotFound {
		t.Errorf("from another address: %d", got)
	}
}

// A change of a tenant takes effect as soon as Redis returns another generation, not only when the cached host expires;
// without a change the database is not asked.
func TestNewGenerationIsNoticed(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	id := d.Tenant(t, "one")
	r := tenant.NewResolver(d.App, tenant.Config{})
	suspended := func(found httpapi.Tenant, err error) bool {
		t.Helper()
		if err != nil || found.ID != id {
			t.Fatal(found, err)
		}
		return found.Suspended
	}
	confirmed := func(generation string) bool {
		t.Helper()
		return suspended(r.Confirm(t.Context(), "one.test", generation))
	}
	if suspended(r.ByHost(t.Context(), "one.test")) || confirmed("g1") {
		t.Error("suspended before anybody did it")
	}
	d.Exec(t, "update tenant set status = 'suspended'")
	if confirmed("g1") {
		t.Error("the database was asked although the generation is the same")
	}
	for range 2 {
		if !confirmed("g2") {
			t.Error("a new generation was not noticed")
		}
	}
	if !suspended(r.ByHost(t.Context(), "one.test")) {
		t.Error("what the database said was not kept")
	}

	d.Exec(t, "update tenant set status = 'active'")
	r.Expire()
	if suspended(r.ByHost(t.Context(), "one.test")) {
		t.Error("an expired host was not looked up again")
	}
	d.Exec(t, "update tenant set status = 'suspended'")
	if !confirmed("g3") {
		t.Error("a new generation was not noticed after the host had expired")
	}
}

// Only a single-tenant installation answers to hosts that nobody has named, with the default tenant.
func TestUnknownHosts(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	for name, prefix := range map[string]string{"one": "mine", tenant.Default: "komga"} {
		d.Set(t, d.Tenant(t, name), "komga_api.prefix", prefix)
	}
	for _, c := range []struct {
		single             bool
		host, name, prefix string
	}{
		{true, "one.test", "one", "mine"}, {true, "unknown.test", tenant.Default, "komga"},
		{false, "one.test", "one", "mine"}, {false, "unknown.test", "", ""},
	} {
		found, err := tenant.NewResolver(d.App, tenant.Config{Single: c.single}).ByHost(t.Context(), c.host)
		if found.Name != c.name || found.Prefix != c.prefix || (c.name == "") != fault.Is(err, fault.NotFound) || (c.name != "") != (err == nil) {
			t.Errorf("%+v: %+v, %v", c, found, err)
		}
	}
}
