package rendition

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// A picture that makes the renderer panic fails only its request, not the process.
func TestAPanicEndsOnlyItsPicture(t *testing.T) {
	t.Parallel()
	var m Maker // without Redis, looking for others panics
	load := func(context.Context) ([]byte, error) { return nil, nil }
	if _, err := m.render(t.Context(), "key", imaging.Spec{}, false, load, func(context.Context, int) bool { return false }); err == nil || !strings.HasPrefix(err.Error(), "panic: ") {
		t.Errorf("%v, want that it panicked", err)
	}
}

// A picture that was being made when its tenant got other keys, or was about to be deleted, is not stored: the
// operator's clean-up may be over.
func TestAPictureOfOldKeysIsNotStored(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]bool{"name = name": true, "secret = sha256(secret)": false, "status = 'deleting'": false} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			var s *testkit.Server
			m, _ := drawn(t, func(context.Context, io.ReaderAt, int64, int) ([]byte, error) {
				s.DB.Exec(t, "update tenant set "+change+" where id = $1", s.One)
				return testkit.JPEG(t, 60, 90, 1), nil
			})
			m.soon = time.Nanosecond
			row := ofPDF()
			var secret []byte
			s = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
				m.Database = d
				a.Outside("/picture/", func(w http.ResponseWriter, r *http.Request) error {
					httpapi.SetTenant(r.Context(), httpapi.Tenant{ID: s.One, Secret: secret})
					return m.Cover(w, r, row)
				})
			})
			if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select secret from tenant where id = $1", s.One).Scan(&secret); err != nil {
				t.Fatal(err)
			}
			s.Anonymous(t, "one").Do("GET", "/picture/", nil).Want(200)
			img, err := m.stored(t.Context(), coverKey(s.One, row.ID, secret, row.Fingerprint, row.Cover))
			if err != nil || (img != nil) != want {
				t.Errorf("stored is %t, want %t; %v", img != nil, want, err)
			}
		})
	}
}

// What is made but not stored does not count as stored for the account.
func TestBytesOfWhatIsNotStored(t *testing.T) {
	t.Parallel()
	s3 := testkit.StartS3(t)
	m := &Maker{Media: s3.Config.Media(), Bucket: "media", Renderer: imaging.New(imaging.Config{}), Redis: testkit.Redis(t)}
	var tenant httpapi.Tenant
	var key string
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		m.Database = d
		a.Outside("/picture/", func(_ http.ResponseWriter, r *http.Request) error {
			httpapi.SetTenant(r.Context(), tenant)
			load := func(context.Context) ([]byte, error) { return testkit.JPEG(t, 60, 90, 1), nil }
			_, err := m.render(r.Context(), key, imaging.Spec{Width: 30, Format: imaging.JPEG}, false, load,
				func(ctx context.Context, size int) bool { return m.secondMiss(ctx, tenant.ID, key, size) })
			return err
		})
	})
	s.DB.Exec(t, "update tenant set max_rendition_bytes = 0 where id = $1", s.One)
	for _, c := range []struct {
		what   string
		limit  *int64
		away   bool
		stored bool
	}{{"beyond the tenant's limit", new(int64(0)), false, false}, {"the store refuses it", nil, true, false}, {"stored", nil, false, true}} {
		tenant, key = httpapi.Tenant{ID: s.One, MaxRenditionBytes: c.limit}, blob.Expiring+c.what
		s3.Counter.Meddle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if c.away {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			next.ServeHTTP(w, r)
		})
		for range 2 { // the first miss alone stores nothing
			s.Anonymous(t, "one").Do("GET", "/picture/", nil).Want(200)
		}
		n, err := m.Redis.Get(t.Context(), storedName(s.One, uuid.Nil)).Int()
		if err != nil || (n > 0) != c.stored {
			t.Errorf("%s: %d bytes count, %v", c.what, n, err)
		}
	}
	if left := m.Redis.PTTL(t.Context(), storedName(s.One, uuid.Nil)).Val(); left <= 0 {
		t.Errorf("the count ends in %s", left)
	}
}

// A stored picture that cannot be read to its end keeps no room.
func TestRoomOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	s3 := testkit.StartS3(t)
	m := &Maker{Media: s3.Config.Media(), Bucket: "media", Pages: page.NewServer(page.Server{})}
	s3.Counter.Meddle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Length", strconv.Itoa(1<<20))
		_, _ = w.Write(make([]byte, 1000))
	})
	if _, err := m.stored(t.Context(), "k"); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	for range 2 { // together all that a tenant has
		if _, err := m.Pages.Hold(t.Context(), 64<<20, page.Brief); err != nil {
			t.Error(err)
		}
	}
}
