package blob

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// prompt aborts a response when no bytes arrive for a while and its reader waits. net/http limits only the wait for the
// header.
type prompt struct {
	send   func(*http.Request) (*http.Response, error)
	within time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p *prompt) RoundTrip(req *http.Request) (*http.Response, error) { return p.Do(req) }

// Do implements the HTTP client interface of the SDK.
func (p *prompt) Do(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	res, err := p.send(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	stalls := time.AfterFunc(p.within, cancel)
	stalls.Stop()
	res.Body = &promptBody{res.Body, p.within, stalls, cancel, req.Context()}
	return res, nil
}

type promptBody struct {
	io.ReadCloser
	within time.Duration
	stalls *time.Timer
	cancel func()
	asker  context.Context
}

func (b *promptBody) Read(p []byte) (int, error) {
	b.stalls.Reset(b.within)
	n, err := b.ReadCloser.Read(p)
	if stalled := !b.stalls.Stop(); stalled && err != nil && err != io.EOF && b.asker.Err() == nil {
		err = fmt.Errorf("%w: no data for %s", ErrCut, b.within)
	}
	return n, err
}

// Close implements io.Closer.
func (b *promptBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
