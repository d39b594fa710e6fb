package tenant_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

// Tenants with a limit are measured, permanent and expiring objects; none is started after the time limit.
func TestMeasure(t *testing.T) {
	t.Parallel()
	d, s := testkit.DB(t), testkit.StartS3(t)
	media := s.Config.Media()
	const tenants = 4
	for i := range tenants {
		id := d.Tenant(t, "t"+strconv.Itoa(i))
		for _, key := range []string{id.String() + "/cover/a", blob.Expiring + id.String() + "/b"} {
			if err := media.Put(t.Context(), "media", key, "image/webp", make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.Exec(t, "update tenant set max_rendition_bytes = 1000 where name <> 't0'")
	measured := func() (n, bytes int) {
		t.Helper()
		if err := d.Owner.Pool().QueryRow(t.Context(), "select count(*), coalesce(sum(bytes), 0) from rendition_usage").Scan(&n, &bytes); err != nil {
			t.Fatal(err)
		}
		return n, bytes
	}
	if err := tenant.Measure(t.Context(), d.System, media, "media", -time.Second); err != nil {
		t.Fatal(err)
	}
	if n, _ := measured(); n != 0 {
		t.Errorf("%d tenants were measured after the time was up", n)
	}
	if err := tenant.Measure(t.Context(), d.System, media, "media", time.Minute); err != nil {
		t.Fatal(err)
	}
	if n, bytes := measured(); n != tenants-1 || bytes != 200*(tenants-1) {
		t.Errorf("%d tenants of %d with %d bytes", n, tenants-1, bytes)
	}

	// What is added during a measurement counts.
	s.Counter.Meddle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
		if strings.HasPrefix(r.URL.Query().Get("prefix"), blob.Expiring) {
			d.Exec(t, "insert into rendition_usage as u (tenant_id, bytes) select id, 7 from tenant where max_rendition_bytes is not null"+
				" on conflict (tenant_id) do update set bytes = u.bytes + excluded.bytes")
		}
	})
	for _, before := range []string{"update rendition_usage set bytes = 900", "delete from rendition_usage"} {
		d.Exec(t, "update tenant set max_rendition_bytes = null where name <> 't1'")
		d.Exec(t, before)
		if err := tenant.Measure(t.Context(), d.System, media, "media", time.Minute); err != nil {
			t.Fatal(err)
		}
		d.Exec(t, "delete from rendition_usage u using tenant where id = tenant_id and name <> 't1'")
		if n, bytes := measured(); n != 1 || bytes != 207 {
			t.Errorf("%s: %d tenants with %d bytes", before, n, bytes)
		}
	}
}

// A measurement that is stopped goes on where it was: nothing is listed twice, and what was added since its start
// counts.
func TestMeasurementThatIsStopped(t *testing.T) {
	t.Parallel()
	d, s := testkit.DB(t), testkit.StartS3(t)
	media := s.Config.Media()
	id := d.Tenant(t, "one")
	d.Exec(t, "update tenant set max_rendition_bytes = 1000")
	d.Exec(t, "insert into rendition_usage (tenant_id, bytes) values ($1, 500)", id)
	last := id.String() + "/cover/b"
	for _, key := range []string{id.String() + "/cover/a", last, blob.Expiring + id.String() + "/c"} {
		if err := media.Put(t.Context(), "media", key, "image/webp", make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	usage := func(want int) {
		t.Helper()
		var bytes int
		if err := d.Owner.Pool().QueryRow(t.Context(), "select bytes from rendition_usage").Scan(&bytes); err != nil || bytes != want {
			t.Errorf("%d bytes, want %d: %v", bytes, want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Counter.Meddle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasPrefix(r.URL.Query().Get("prefix"), blob.Expiring) {
			cancel()
			return
		}
		next.ServeHTTP(w, r)
	})
	if err := tenant.Measure(ctx, d.System, media, "media", time.Minute); err == nil {
		t.Error("it was not stopped")
	}
	usage(500)
	d.Exec(t, "update rendition_usage set bytes = bytes + 7")
	s.Counter.Meddle(nil)
	s.Counter.Reset()
	if err := tenant.Measure(t.Context(), d.System, media, "media", time.Minute); err != nil {
		t.Fatal(err)
	}
	usage(307)
	if lists := s.Counter.Reset(); len(lists) != 2 || !strings.Contains(lists[0].Query, "start-after="+url.QueryEscape(last)) {
		t.Errorf("listed again: %+v", lists)
	}
	// The next measurement starts anew.
	if err := tenant.Measure(t.Context(), d.System, media, "media", time.Minute); err != nil {
		t.Fatal(err)
	}
	usage(300)
}
