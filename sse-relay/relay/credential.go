package relay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/events"
)

const (
	maxAnswer      = 64 << 10
	maxPermissions = 256
)

// credential holds the parts of a request that identify it to the API.
type credential struct {
	authorization, apiKey, cookie string
	host, forwardedHost           string
	forwardedFor                  string // not part of the identity
}

func credentialOf(r *http.Request) credential {
	c := credential{
		authorization: r.Header.Get("Authorization"),
		apiKey:        r.Header.Get("X-API-Key"),
		cookie:        strings.Join(r.Header.Values("Cookie"), "; "),
		host:          r.Host,
		forwardedHost: r.Header.Get("X-Forwarded-Host"),
		forwardedFor:  strings.Join(r.Header.Values("X-Forwarded-For"), ", "),
	}
	if c.forwardedFor == "" {
		c.forwardedFor, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	return c
}

// key identifies the credential and its tenant.
func (c credential) key() [sha256.Size]byte {
	text := strings.Join([]string{c.authorization, c.apiKey, c.cookie, c.host, c.forwardedHost}, "\n")
	return sha256.Sum256([]byte(text))
}

// place identifies the tenant's host. It is hashed because it is cached and may be long.
func (c credential) place() [sha256.Size]byte {
	return sha256.Sum256([]byte(c.forwardedHost + "\n" + c.host))
}

// answer is the API's answer about a credential.
type answer struct {
	TenantID    uuid.UUID  `json:"tenantId"`
	UserID      uuid.UUID  `json:"userId"`
	Permissions []string   `json:"permissions"`
	ExpiresAt   *time.Time `json:"expiresAt"`

	limit http.Header // rate limit headers
}

var limitFields = []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

// fields returns those of the named headers that h has.
func fields(h http.Header, names ...string) http.Header {
	out := http.Header{}
	for _, name := range names {
		if value := h.Get(name); value != "" {
			out.Set(name, value)
		}
	}
	return out
}

// refusal is an error response: the API's own, passed on, or ours.
type refusal struct {
	status int
	header http.Header
	body   []byte
}

func (r *refusal) Error() string { return fmt.Sprintf("the API answered %d", r.status) }

// lasting reports whether the refusal means that the credential is invalid, not that it cannot be checked now.
func (r *refusal) lasting() bool {
	return r.status >= 400 && r.status < 500 && r.status != http.StatusTooManyRequests && r.status != http.StatusRequestTimeout
}

// tooMany reports whether the API refused because of its rate limit.
func tooMany(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.status == http.StatusTooManyRequests
}

// errUnavailable means that the API could not be reached.
var errUnavailable = errors.New("the API cannot confirm the access")

// apiClient asks the API about credentials.
type apiClient struct {
	url      string
	keepHost bool
	secret   string
	http     *http.Client
}

func newAPIClient(cfg Config) *apiClient {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = 32, 128
	transport.DisableCompression = true
	return &apiClient{
		url:      strings.TrimRight(cfg.APIURL, "/") + "/api/v1/auth/stream",
		keepHost: cfg.APIKeepHost,
		secret:   strings.Join(cfg.OriginSecret[:min(len(cfg.OriginSecret), 1)], ""),
		http: &http.Client{Transport: transport, Timeout: cfg.APITimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// ask returns the API's answer, a *refusal, or an error that wraps errUnavailable. The API counts the request against
// the user's rate limit, except for the events stream.
func (a *apiClient) ask(ctx context.Context, c credential, stream events.Topic) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"?stream="+string(stream), nil)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	if a.keepHost {
		request.Host = c.host
	}
	for name, value := range map[string]string{
		"Authorization": c.authorization, "X-API-Key": c.apiKey, "Cookie": c.cookie,
		"X-Forwarded-Host": cmp.Or(c.forwardedHost, c.host), "X-Forwarded-For": c.forwardedFor,
		"X-Origin-Secret": a.secret, "Accept": "application/json", "User-Agent": "longbox-sse-relay",
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := a.http.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errUnavailable, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return answer{}, fmt.Errorf("%w: read the answer: %w", errUnavailable, err)
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case len(body) > maxAnswer:
		return answer{}, fmt.Errorf("%w: the answer is longer than %d bytes", errUnavailable, maxAnswer)
	case response.StatusCode >= 400 && media == "application/json" && json.Valid(body):
		header := fields(response.Header, append(limitFields, "Www-Authenticate", "Retry-After", "X-Request-Id")...)
		header.Set("Content-Type", "application/json")
		return answer{}, &refusal{response.StatusCode, header, body}
	case response.StatusCode != http.StatusOK:
		return answer{}, fmt.Errorf("%w: it answered %s with the content type %q", errUnavailable, response.Status, media)
	}
	out := answer{limit: fields(response.Header, limitFields...)}
	if err := json.Unmarshal(body, &out); err != nil {
		return answer{}, fmt.Errorf("%w: read the answer: %w", errUnavailable, err)
	}
	if out.TenantID == uuid.Nil || out.UserID == uuid.Nil || len(out.Permissions) > maxPermissions {
		return answer{}, fmt.Errorf("%w: the answer names no tenant, no user, or more than %d permissions", errUnavailable, maxPermissions)
	}
	return out, nil
}
