// Package rig provides the surroundings of a relay for tests and benchmarks: a fake API with accounts, and a client
// that reads a stream.
package rig

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Account is what the API answers for a bearer token.
type Account struct {
	Tenant      uuid.UUID
	User        uuid.UUID
	Permissions []string
	Expires     time.Time // zero: never
}

// Reader returns an account with the permissions of a reader.
func Reader(tenant uuid.UUID) Account {
	return Account{Tenant: tenant, User: uuid.New(), Permissions: []string{"LibrariesRead", "SeriesRead", "BooksRead", "PagesRead", "SeesAll"}}
}

// burst is the burst size that the API announces. It enforces no limit.
const burst = 200

// API answers GET /api/v1/auth/stream like the real one.
type API struct {
	mu       sync.Mutex
	accounts map[string]Account
	override http.HandlerFunc
	asked    map[string]int
	counted  map[string]int // requests that count against the rate limit: for other streams than events
	last     *http.Request
}

// NewAPI returns an API without accounts.
func NewAPI() *API {
	return &API{accounts: map[string]Account{}, asked: map[string]int{}, counted: map[string]int{}}
}

// Set registers the token.
func (a *API) Set(token string, account Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accounts[token] = account
}

// Remove makes the API reject the token.
func (a *API) Remove(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.accounts, token)
}

// Answer makes handler answer all requests; nil restores the normal behaviour.
func (a *API) Answer(handler http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.override = handler
}

// Asked returns the number of requests with the token.
func (a *API) Asked(token string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[token]
}

// Last returns the last request.
func (a *API) Last() *http.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("Authorization") + r.Header.Get("X-API-Key") + r.Header.Get("Cookie")
	a.mu.Lock()
	account, known := a.accounts[token]
	override := a.override
	a.asked[token]++
	a.last = r
	exempt := r.URL.Query().Get("stream") == "events"
	if !exempt {
		a.counted[token]++
	}
	remaining := burst - a.counted[token]
	a.mu.Unlock()
	if override != nil {
		override(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !exempt {
		w.Header().Set("X-RateLimit-Limit", strconv.Itoa(burst))
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(remaining))
		w.Header().Set("X-RateLimit-Reset", "0")
	}
	if r.URL.Path != "/api/v1/auth/stream" || !known {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"Unauthorized","message":"Sign in first.","details":null}`))
		return
	}
	var expires *time.Time
	if !account.Expires.IsZero() {
		expires = &account.Expires
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"tenantId": account.Tenant, "userId": account.User,
		"permissions": account.Permissions, "expiresAt": expires})
}
