package tenant_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/longbox/longbox/shared/domain/tenant"
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
