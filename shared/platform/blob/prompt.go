package blob

import (
	"context"
	"errors"
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
	ctx, cancel := context.WithCancelCause(req.Context())
	res, err := p.send(req.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	stalls := time.AfterFunc(p.within, func() { cancel(fmt.Errorf("%w: no data for %s", ErrCut, p.within)) })
	stalls.Stop()
	res.Body = &promptBody{res.Body, p.within, stalls, ctx, cancel}
	return res, nil
}

type promptBody struct {
	io.ReadCloser
	within time.Duration
	stalls *time.Timer
	ctx    context.Context // ends with ErrCut after a stall
	cancel context.CancelCauseFunc
}

func (b *promptBody) Read(p []byte) (int, error) {
	b.stalls.Reset(b.within)
	n, err := b.ReadCloser.Read(p)
	b.stalls.Stop()
	if cause := context.Cause(b.ctx); err != nil && err != io.EOF && errors.Is(cause, ErrCut) {
		err = cause
	}
	return n, err
}

// Close implements io.Closer.
func (b *promptBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
