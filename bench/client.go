package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// client is a signed-in user.
type client struct {
	http        *http.Client
	token, host string // host selects the tenant; "" is the default one.
	reader      bool   // responses must show the rate limit of a person who reads
}

func newClient(token string) *client {
	return &client{token: token, http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		MaxIdleConnsPerHost: 64, DisableCompression: true, // Each benchmark sets its own Accept-Encoding.
	}}}
}

func (c *client) request(ctx context.Context, method, url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.host != "" {
		req.Host = c.host
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// do sends a request.
func (c *client) do(req *http.Request) (*http.Response, error) {
	res, err := c.http.Do(req)
	if err != nil || !c.reader {
		return res, err
	}
	if err := unhurried(res.Header); err != nil {
		res.Body.Close()
		return nil, fmt.Errorf("%s answers %s: %w", req.URL, res.Status, err)
	}
	return res, nil
}

// unhurried returns an error if the rate limit is off, or if half of the caller's tokens are used up: then the next
// request would not start ahead, as it does for a person who reads.
func unhurried(h http.Header) error {
	limit, err1 := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	left, err2 := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("the request was not counted: %w", err)
	}
	if left <= limit/2 {
		return fmt.Errorf("the caller has only %d of %d requests left", left, limit)
	}
	return nil
}

// readers creates accounts and returns their clients. A benchmark that sends more requests than one person may uses
// them in turn. Administrators are counted like all others.
func (s *system) readers(ctx context.Context, n int) ([]*client, error) {
	var all []*client
	shared := newClient("").http
	for range n {
		id := uuid.New()
		if _, err := s.admin.Exec(ctx, `insert into account (tenant_id, id, username, email, password_hash, role)
			values ($1, $2, $2::uuid::text, $2::uuid::text, '', 'admin')`, s.tenant, id); err != nil {
			return nil, err
		}
		token, err := s.sign(s.tenant, id)
		if err != nil {
			return nil, err
		}
		all = append(all, &client{http: shared, token: token, reader: true})
	}
	return all, nil
}

// call sends and receives JSON. A status other than 2xx is an error.
func (c *client) call(ctx context.Context, method, url string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := c.request(ctx, method, url, body)
	if err != nil {
		return err
	}
	res, err := c.do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s answers %s: %.300s", method, url, res.Status, raw)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(raw, out)
}

// timed returns the duration of a GET including its body, in milliseconds, for any status.
func (c *client) timed(ctx context.Context, url string) (took float64, status int, err error) {
	req, err := c.request(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	res, err := c.do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return since(began), res.StatusCode, err
}

// below returns the URL of a route: below the API prefix, or unchanged if it starts with a slash.
func below(base, route string) string {
	if strings.HasPrefix(route, "/") {
		return base + route
	}
	return base + "/api/v1/" + route
}
