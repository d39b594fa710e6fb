package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// client is a signed-in user.
type client struct {
	http        *http.Client
	token, host string // host selects the tenant; "" is the default one.
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
	res, err := c.http.Do(req)
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

// time returns the duration of a GET including its body, in milliseconds.
func (c *client) time(ctx context.Context, url string) (float64, error) {
	began := time.Now()
	err := c.call(ctx, http.MethodGet, url, nil, nil)
	return since(began), err
}

// timed returns the duration of a GET including its body, in milliseconds, for any status.
func (c *client) timed(ctx context.Context, url string) (took float64, status int, err error) {
	req, err := c.request(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	res, err := c.http.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return since(began), res.StatusCode, err
}

func since(t time.Time) float64 { return float64(time.Since(t).Nanoseconds()) / 1e6 }

// below returns the URL of a route: below the API prefix, or unchanged if it starts with a slash.
func below(base, route string) string {
	if strings.HasPrefix(route, "/") {
		return base + route
	}
	return base + "/api/v1/" + route
}
