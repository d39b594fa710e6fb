package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
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
)

// Tenant is the library server that a request's host name names.
type Tenant struct {
	ID        uuid.UUID
	Name      string
	Secret    []byte // 32 bytes: keys what must not be guessed
	Suspended bool
	Prefix    string // of the operations that are Prefixed; "": it has none

	MaxRequests       int    // a second, of all its users together; 0: no limit
	MaxRenditionBytes *int64 // in the media bucket; nil: no limit
}

// same tells whether a request that began for t can be answered for o.
func (t Tenant) same(o Tenant) bool {
	return t.ID == o.ID && t.Name == o.Name && t.Prefix == o.Prefix && bytes.Equal(t.Secret, o.Secret)
}

// request is what the middleware knows of one request; it travels in the context.
type request struct {
	client     context.Context // ends when the client leaves
	id         string
	url        *url.URL
	host       string         // with the port
	cookies    []*http.Cookie // that the client sent
	header     http.Header    // of the answer
	tenant     Tenant
	clientIP   string
	userAgent  string
	device     string
	generation string       // of the tenant's access data; "" when Redis did not answer
	relied     bool         // on generation, before it was confirmed
	out        *writer      // of the answer
	enter      func() error // checks caller and permission before a failed validation is shown
	notes      []slog.Attr
	err        error
	body       body
	started    time.Time
}

// body notes what kept it from being read to its end: that is the client's doing.
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

// broken is the fault of a body that did not come whole; nil where it did.
func (b *body) broken() error {
	switch {
	case b.err == nil:
		return nil
	case errors.Is(b.err, os.ErrDeadlineExceeded):
		return fault.Wrap(b.err, fault.TimedOut, "The body of the request took longer than %d seconds to arrive; send it again, or in smaller parts", int(bodyPatience.Seconds()))
	}
	return fault.Wrap(b.err, fault.BadRequest, "The body of the request did not come whole; send it again")
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

// Header is the header of the answer, for cookies and the like.
func Header(ctx context.Context) http.Header { return requestOf(ctx).header }

// TenantOf is the tenant of the request.
func TenantOf(ctx context.Context) Tenant { return requestOf(ctx).tenant }

// SetTenant names the tenant of a request outside the interface.
func SetTenant(ctx context.Context, t Tenant) { requestOf(ctx).tenant = t }

// ClientIP is the address that the trusted proxies report.
func ClientIP(ctx context.Context) string { return requestOf(ctx).clientIP }

// UserAgent is the client's own name for itself.
func UserAgent(ctx context.Context) string { return requestOf(ctx).userAgent }

// Device is how the client calls the device that it runs on (X-Codex-Device-Id), in at most 128 bytes; "" when it says
// nothing.
func Device(ctx context.Context) string { return requestOf(ctx).device }

// Generation changes whenever what callers of the tenant may see changes, or where a book's file lies; "" when it is
// not known, and then nothing may be remembered between requests.
func Generation(ctx context.Context) string {
	r := requestOf(ctx)
	if r.out != nil && r.out.before != nil {
		r.relied = true
	}
	return r.generation
}

// Note adds to the one log line of the request.
func Note(ctx context.Context, attrs ...slog.Attr) { requestOf(ctx).note(attrs...) }

// Cookie answers with a cookie.
func Cookie(ctx context.Context, c *http.Cookie) { Header(ctx).Add("Set-Cookie", c.String()) }

// CookieOf is the value of a cookie that the client sent; "" where there is none.
func CookieOf(ctx context.Context, name string) string {
	for _, c := range requestOf(ctx).cookies {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// Address is how the client called this server: scheme, host and port.
func Address(ctx context.Context) string {
	r := requestOf(ctx)
	return r.url.Scheme + "://" + r.host
}

// Secure tells whether the client came by https.
func Secure(ctx context.Context) bool { return requestOf(ctx).url.Scheme == "https" }

// inTenant is ctx in the request's tenant but in nobody's name, for sign-in and set-up.
func inTenant(ctx context.Context) context.Context { return db.In(ctx, db.Tenant(TenantOf(ctx).ID)) }

func newRequestID() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // crypto/rand.Read never fails (it ends the program instead)
	return hex.EncodeToString(b)
}
