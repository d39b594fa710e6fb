package rendition

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/flight"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/redisconn"
	"github.com/longbox/longbox/shared/platform/turn"
)

// admission is how long the first miss of a page is remembered, and the time for which storedOfAccount and storedOfCDN
// are limits.
const admission = 24 * time.Hour

// How many bytes of page renditions are stored for one account, and for all requests of a tenant without an account: a
// CDN's. Each page has thousands of sizes. Beyond this, renditions are made for each request.
const (
	storedOfAccount = 2 << 30
	storedOfCDN     = 16 << 30
)

// Maker makes and stores renditions.
type Maker struct {
	Database *db.DB
	Content  *content.Reader // reads the library
	Pages    *page.Server
	Media    *blob.Store
	Bucket   string
	Renderer *imaging.Renderer
	Redis    redis.UniversalClient // counts misses of pages
	Turns    turn.Shares           // fair turns between tenants and users; the Renderer's own queue is shared by all

	// Patience is how long a request waits for a cover without a byte range of its own; zero: coverPatience.
	Patience time.Duration

	flights flight.Group[*image]
	said    redisconn.Seldom // see lost
	unmade  memory           // covers that could not be made recently
	soon    time.Duration    // see sameKeys; zero: soon
}

// image is a picture ready to be sent.
type image struct {
	data []byte
	kind string
	give func() // releases the room for data; nil while data is not counted (page.Server.Hold)
}

// StoreCover renders and stores a cover during analysis, or for a task. A picture that cannot be rendered is not an
// error; the warning says why.
func (m *Maker) StoreCover(ctx context.Context, tenant, book uuid.UUID, secret []byte, fingerprint string, c Cover, source []byte) (warning string, err error) {
	res, err := m.Renderer.Render(ctx, source, c.spec())
	var bad *imaging.Undecodable
	var large *imaging.TooLarge
	if errors.As(err, &bad) || errors.As(err, &large) {
		return "no cover: " + err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	return "", m.Media.Put(ctx, m.Bucket, coverKey(tenant, book, secret, fingerprint, c), res.MediaType, res.Bytes)
}

// stored returns the object's content, or nil if there is none. Room for it is taken before it is read.
func (m *Maker) stored(ctx context.Context, key string) (*image, error) {
	body, o, err := m.Media.Get(ctx, m.Bucket, key)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	defer body.Close()
	give, err := m.Pages.Hold(ctx, o.Size, page.Patience)
	if err != nil {
		return nil, err
	}
	var data []byte
	if o.Size < 0 { // the store does not report the size
		data, err = io.ReadAll(body)
	} else {
		data = make([]byte, o.Size)
		_, err = io.ReadFull(body, data)
	}
	if err != nil {
		give()
		return nil, unavailable(err)
	}
	return &image{data: data, give: give}, nil
}

// readable turns a failed read of a source picture into the error for the client.
func readable(data []byte, err error) ([]byte, error) {
	var a *archive.Error
	switch {
	case err == nil:
		return data, nil
	case errors.As(err, new(*fault.Error)):
		return nil, err
	case blob.Lost(err):
		return nil, page.Stale(err)
	case errors.Is(err, blob.ErrArchived):
		return nil, page.Archived(err)
	case errors.Is(err, blob.ErrDenied):
		return nil, fault.Wrap(err, fault.Unavailable, "The store refuses Longbox the file of this picture: check its permissions").After(2 * time.Second)
	case errors.As(err, &a):
		return nil, fault.Wrap(err, fault.Unprocessable, "The page cannot be read: %v", err)
	case errors.As(err, new(*archive.Undrawn)):
		return nil, page.Undrawn(err)
	}
	return nil, unavailable(err)
}

// renderWithin limits the time that one rendition may take, with waiting.
const renderWithin = time.Minute

// render makes the picture. Concurrent requests for it share the work, and only one process at a time works on it. The
// other processes find the stored result: their waiting has counted as a second request, so keep was true. Unless the
// work stays, it ends when all its requests have and it is still waiting for its turn: a reader who flips through a
// book waits for no page but the last.
func (m *Maker) render(ctx context.Context, key string, spec imaging.Spec, stays bool, load func(ctx context.Context) ([]byte, error), keep func(ctx context.Context, size int) bool) (*image, error) {
	return m.flights.Do(ctx, key, renderWithin, func(ctx context.Context, begin func()) (*image, error) {
		if stays {
			begin()
		}
		began, others := time.Now(), false
		defer m.alone(ctx, httpapi.TenantOf(ctx).ID, key, func() { others = true; keep(ctx, 0) })()
		if others {
			img, err := m.stored(ctx, key)
			if err != nil {
				return nil, err
			}
			if img != nil {
				img.give()
				return &image{data: img.data}, nil // each request that shares it takes room for itself
			}
		}
		give, err := m.Turns.Take(ctx, httpapi.TenantOf(ctx).ID, auth.AccountOf(ctx), 1)
		if err != nil {
			return nil, err
		}
		defer give()
		begin()
		data, err := load(ctx)
		if err != nil {
			return nil, err
		}
		res, err := m.Renderer.Render(ctx, data, spec)
		if err != nil {
			return nil, explain(err)
		}
		if size := len(res.Bytes); keep(ctx, size) {
			stored := m.sameKeys(ctx, key, began) && m.within(ctx, key, size)
			if stored {
				if err := m.Media.Put(ctx, m.Bucket, key, res.MediaType, res.Bytes); err != nil {
					stored = false
					slog.Warn("cannot store a rendition", "tenant", httpapi.TenantOf(ctx).ID, "key", key, "error", err) // the response is sent anyway, and rendered again
				}
			}
			if !stored {
				m.uncount(ctx, key, size)
			}
		}
		return &image{data: res.Bytes, kind: res.MediaType}, nil
	})
}

// soon is how long after its begin a rendition is stored without a second look at its tenant. With the seconds that a
// tenant is cached it stays below operator.DefaultSettle.
const soon = time.Second / 2

// sameKeys reports whether the tenant is still active and has the keys with which the rendition began. Otherwise it
// could be stored after the operator's clean-up, and would stay.
func (m *Maker) sameKeys(ctx context.Context, key string, began time.Time) bool {
	if time.Since(began) < cmp.Or(m.soon, soon) {
		return true
	}
	t := httpapi.TenantOf(ctx)
	var b pgx.Batch
	var same bool
	db.Value(&b, &same, "select exists (select from tenant where id = app.tenant() and status = 'active' and secret = $1)", t.Secret)
	if err := m.Database.Run(db.In(ctx, db.Tenant(t.ID)), &b); err != nil {
		slog.Warn("cannot compare a tenant's keys; the rendition is not stored", "tenant", t.ID, "key", key, "error", err)
		return false
	}
	return same
}

// countMiss remembers the miss KEYS[1] for ARGV[1] ms. It returns 1 if it was known and ARGV[2] more bytes are within
// the limit ARGV[3] of KEYS[2], and counts them there.
var countMiss = redis.NewScript(`if redis.call('set', KEYS[1], 1, 'nx', 'px', ARGV[1]) then return 0 end
if tonumber(redis.call('get', KEYS[2]) or '0') + ARGV[2] > tonumber(ARGV[3]) then return 0 end
if redis.call('incrby', KEYS[2], ARGV[2]) == tonumber(ARGV[2]) then redis.call('pexpire', KEYS[2], ARGV[1]) end
return 1`)

// storedName is the name of the bytes that were stored for an account, in Redis.
func storedName(tenant, account uuid.UUID) string {
	return fmt.Sprintf("lb:{%s}:stored:%s", tenant, account)
}

// secondMiss counts misses of a page and reports whether to store it: at the second one, unless its account has stored
// too much. Without Redis nothing is stored.
func (m *Maker) secondMiss(ctx context.Context, tenant uuid.UUID, key string, size int) bool {
	account, limit := auth.AccountOf(ctx), storedOfAccount
	if account == uuid.Nil {
		limit = storedOfCDN
	}
	names := []string{fmt.Sprintf("lb:{%s}:miss:%s", tenant, short(key)), storedName(tenant, account)}
	store, err := countMiss.Run(ctx, m.Redis, names, admission.Milliseconds(), size, limit).Bool()
	if err != nil {
		m.lost("cannot count requests for a page; its rendition is not stored", tenant, key, err)
		return false
	}
	return store
}

// uncountBytes subtracts ARGV[1] bytes of what countMiss has counted, unless that has expired meanwhile.
var uncountBytes = redis.NewScript(`if redis.call('exists', KEYS[1]) == 1 then redis.call('decrby', KEYS[1], ARGV[1]) end
return 0`)

// uncount takes back what secondMiss has counted for a page that was not stored after all.
func (m *Maker) uncount(ctx context.Context, key string, size int) {
	if !strings.HasPrefix(key, blob.Expiring) {
		return
	}
	tenant := httpapi.TenantOf(ctx).ID
	name := storedName(tenant, auth.AccountOf(ctx))
	if err := uncountBytes.Run(context.WithoutCancel(ctx), m.Redis, []string{name}, size).Err(); err != nil {
		m.lost("a page that was not stored counts as stored", tenant, key, err)
	}
}

// within reports whether a page rendition of size more bytes fits the tenant's limit of the media bucket, and counts
// it. Covers are stored regardless of the limit: a list without covers is useless.
func (m *Maker) within(ctx context.Context, key string, size int) bool {
	t := httpapi.TenantOf(ctx)
	if t.MaxRenditionBytes == nil || !strings.HasPrefix(key, blob.Expiring) {
		return true
	}
	var b pgx.Batch
	var ok bool
	db.Value(&b, &ok, "select app.keep_rendition($1)", size)
	if err := m.Database.Run(db.In(ctx, db.Tenant(t.ID)), &b); err != nil {
		slog.Warn("cannot count the size of a rendition; it is not stored", "tenant", t.ID, "key", key, "error", err)
		return false
	}
	return ok
}

// short returns a short name for an object in Redis.
func short(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

func explain(err error) error {
	var bad *imaging.Undecodable
	var large *imaging.TooLarge
	var busy *imaging.Busy
	switch {
	case errors.As(err, &bad), errors.As(err, &large):
		return fault.Wrap(err, fault.Unprocessable, "The page cannot be rendered: %v; ask for the original without width, height and format", err)
	case errors.As(err, &busy):
		return fault.Wrap(err, fault.Unavailable, "Too many pages are being rendered; try again shortly").After(time.Second)
	}
	return err
}

func unavailable(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The storage is not reachable at the moment; try again shortly").After(2 * time.Second)
}
