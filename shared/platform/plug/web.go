package plug

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Limits of a WebRequest and its response, in bytes.
const (
	MaxWebAddress = 8 << 10
	MaxWebHeaders = 16 << 10
	MaxWebForm    = 64 << 10
	MaxWebBody    = 1 << 20
)

// WebRequest is a request to an external server, sent by the function plugin: the other functions may be in a network
// without internet access. Redirects are not followed.
type WebRequest struct {
	Method  string            `json:"method"`            // GET or POST
	Address string            `json:"address"`           // http or https
	Headers map[string]string `json:"headers,omitempty"` // only WebHeaders
	Form    []byte            `json:"form,omitempty"`    // the body of a POST, a form unless Content-Type says otherwise
	// Trusted means that the operator has configured the address: it may be in a private network, on any port.
	Trusted bool `json:"trusted,omitempty"`
}

// WebHeaders are the headers that a WebRequest may have.
var WebHeaders = []string{"Accept", "Authorization", "Content-Type"}

// WebResponse is the server's response, whatever its status.
type WebResponse struct {
	Status      int    `json:"status"`
	ContentType string `json:"contentType,omitempty"`
	Body        []byte `json:"body,omitempty"` // at most MaxWebBody
}

// Web sends a request to an external server. The error is a *Fault: FetchFailed if the server is unreachable or
// forbidden. Without a deadline in ctx the limit is 30 seconds.
func (c *Client) Web(ctx context.Context, r WebRequest) (*WebResponse, error) {
	a, err := c.Ask(ctx, Call{Web: &r})
	if err != nil {
		return nil, err
	}
	if a.Web == nil {
		return nil, FaultOf(fmt.Errorf("the function plugin has another version: it does not support requests to %s", r.Address))
	}
	return a.Web, nil
}

// Transport is Web as an http.RoundTripper, for packages that need an http.Client. It drops headers other than
// WebHeaders.
type Transport struct {
	Client  *Client
	Trusted func(*url.URL) bool // reports whether the operator has configured an address; nil: none
}

// RoundTrip sends a request through the function plugin.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	out := WebRequest{Method: r.Method, Address: r.URL.String(), Headers: map[string]string{}, Trusted: t.Trusted != nil && t.Trusted(r.URL)}
	for _, name := range WebHeaders {
		if value := r.Header.Get(name); value != "" {
			out.Headers[name] = value
		}
	}
	if r.Body != nil {
		defer r.Body.Close()
		form, err := io.ReadAll(io.LimitReader(r.Body, MaxWebForm+1)) // one byte more is refused
		if err != nil {
			return nil, err
		}
		out.Form = form
	}
	got, err := t.Client.Web(r.Context(), out)
	if err != nil {
		return nil, err
	}
	return &http.Response{Status: strconv.Itoa(got.Status) + " " + http.StatusText(got.Status), StatusCode: got.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {got.ContentType}},
		Body: io.NopCloser(bytes.NewReader(got.Body)), ContentLength: int64(len(got.Body)), Request: r}, nil
}
