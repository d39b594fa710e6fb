package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/ratelimit"
)

// Tenant is the library server that a host name belongs to.
type Tenant struct {
	ID        uuid.UUID
	Name      string
	Secret    []byte // 32 bytes, for keyed hashes that must not be guessable
	Suspended bool
	Prefix    string // path prefix of Prefixed operations; "": none

	MaxRequests       int    // per second, of all its users; 0: no limit
	MaxRenditionBytes *int64 // limit for the media bucket; nil: no limit
}

// same reports whether the response to a request for t is also right for o.
func (t Tenant) same(o Tenant) bool {
	return t.ID == o.ID && t.Name == o.Name && t.Prefix == o.Prefix && bytes.Equal(t.Secret, o.Secret)
}

// request is the middleware's data about one request. It is stored in the context.
type request struct {
	client     context.Context // ends when the client disconnects
	id         string
	url        *url.URL
	host       string         // with port
	cookies    []*http.Cookie // sent by the client
	header     http.Header    // of the response
	tenant     Tenant
	clientIP   string
	lookups    *ratelimit.Local // of tenants, by address; nil: not limited
	userAgent  string
	device     string
	password   bool         // the credential is a user name and password
	generation string       // access generation of the tenant; "" when Redis did not answer
	relied     bool         // generation was used before it was confirmed
	out        *writer      // of the response
	enter      func() error // checks caller and permission before validation errors are shown
	notes      []slog.Attr
	err        error
	body       body
	started    time.Time
}

// body records a read error, which is the client's fault.
type body struct {
	io.ReadCloser
	err error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// broken returns the error for an incomplete body, or nil.
func (b *body) broken() error {
	switch {
	case b.err == nil:
		return nil
	case errors.Is(b.err, os.ErrDeadlineExceeded):
		return fault.Wrap(b.err, fault.TimedOut, "The body of the request took longer than %d seconds to arrive; send it again, or in smaller parts", int(bodyPatience.Seconds()))
	}
	return fault.Wrap(b.err, fault.BadRequest, "The body of the request did not arrive completely; send it again")
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return &request{client: ctx, header: http.Header{}, url: &url.URL{}}
}

func (r *request) note(a ...slog.Attr) { r.notes = append(r.notes, a...) }

func (r *request) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Header returns the response header, for cookies and the like.
func Header(ctx context.Context) http.Header { return requestOf(ctx).header }

// ID returns the id of the request, as in its log line, or "".
func ID(ctx context.Context) string { return requestOf(ctx).id }

// TenantOf returns the tenant of the request.
func TenantOf(ctx context.Context) Tenant { return requestOf(ctx).tenant }

// SetTenant sets the tenant of a request outside the API.
func SetTenant(ctx context.Context, t Tenant) { requestOf(ctx).tenant = t }

// ClientIP returns the client's address as the trusted proxies report it.
func ClientIP(ctx context.Context) string { return requestOf(ctx).clientIP }

// UserAgent returns the User-Agent header.
func UserAgent(ctx context.Context) string { return requestOf(ctx).userAgent }

// Device returns the client's name for its device (X-Codex-Device-Id), in at most 128 bytes, or "".
func Device(ctx context.Context) string { return requestOf(ctx).device }

// Generation returns a value that changes whenever the access of the tenant's callers or the location of a book's file
// changes. It is "" if unknown; then nothing may be cached across requests.
func Generation(ctx context.Context) string {
	r := requestOf(ctx)
	if r.out != nil && r.out.before != nil {
		r.relied = true
	}
	return r.generation
}

// Note adds attributes to the request's log line.
func Note(ctx context.Context, attrs ...slog.Attr) { requestOf(ctx).note(attrs...) }

// Cookie sets a cookie in the response.
func Cookie(ctx context.Context, c *http.Cookie) { Header(ctx).Add("Set-Cookie", c.String()) }

// CookieOf returns the value of a cookie of the request, or "".
func CookieOf(ctx context.Context, name string) string {
	for _, c := range requestOf(ctx).cookies {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// Address returns scheme, host and port as the client used them.
func Address(ctx context.Context) string {
	r := requestOf(ctx)
	return r.url.Scheme + "://" + r.host
}

// Secure reports whether the client used https.
func Secure(ctx context.Context) bool { return requestOf(ctx).url.Scheme == "https" }

// inTenant returns a context in the request's tenant without a user, for sign-in and set-up.
func inTenant(ctx context.Context) context.Context { return db.In(ctx, db.Tenant(TenantOf(ctx).ID)) }
