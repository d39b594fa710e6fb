package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/fault"
)

const (
	patience  = 10 * time.Second // timeout of a request to the collector
	maxAnswer = 64 << 10         // bytes of its response that are read, so that the connection can be reused
	atOnce    = 16               // concurrent requests; more are refused, so that a slow collector fills no memory
)

// Config configures the forwarding.
type Config struct {
	Endpoint    string  `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`                // of the collector; empty: none
	SampleRatio float64 `env:"OTEL_TRACES_SAMPLER_ARG" envDefault:"1"`     // of traces sent by clients
	ServiceName string  `env:"OTEL_SERVICE_NAME" envDefault:"longbox-web"` // of the clients
}

// Validate names the invalid setting.
func (c Config) Validate() error {
	if !(c.SampleRatio >= 0 && c.SampleRatio <= 1) { // nor NaN
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: must be 0 to 1, is %g", c.SampleRatio)
	}
	if c.Endpoint == "" {
		return nil
	}
	if strings.ContainsAny(c.Endpoint, "?#") {
		return errors.New("OTEL_EXPORTER_OTLP_ENDPOINT: must not contain ? or #, because /v1/traces and /v1/metrics are appended to it")
	}
	return environ.WebAddress("OTEL_EXPORTER_OTLP_ENDPOINT", c.Endpoint)
}

// forwarder sends to the collector.
type forwarder struct {
	endpoint string // without a trailing slash
	client   *http.Client
	turns    chan struct{} // one per concurrent request
}

func newForwarder(c Config) *forwarder {
	return &forwarder{strings.TrimRight(c.Endpoint, "/"), &http.Client{Timeout: patience,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: atOnce, IdleConnTimeout: time.Minute},
		// No redirects: data goes only to the address that the operator has set.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, make(chan struct{}, atOnce)}
}

// send forwards a body to the collector's path, v1/traces or v1/metrics.
func (f *forwarder) send(ctx context.Context, to string, in *Input) error {
	if f.endpoint == "" {
		return &fault.Error{Code: fault.Unavailable, RetryAfter: time.Hour,
			Message: "This server accepts no telemetry: its operator has set no collector (OTEL_EXPORTER_OTLP_ENDPOINT)"}
	}
	kind, _, err := mime.ParseMediaType(in.ContentType)
	if err != nil || kind != "application/x-protobuf" && kind != "application/json" {
		return fault.Invalid("Content-Type", "must be application/x-protobuf or application/json")
	}
	if in.ContentEncoding != "" && in.ContentEncoding != "gzip" {
		return fault.Invalid("Content-Encoding", "must be gzip or absent")
	}
	select {
	case f.turns <- struct{}{}:
		defer func() { <-f.turns }()
	default:
		return &fault.Error{Code: fault.Unavailable, RetryAfter: patience, Message: "The telemetry collector is busy; try again later"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.endpoint+"/"+to, bytes.NewReader(in.RawBody))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("User-Agent", "Longbox")
	if in.ContentEncoding != "" {
		req.Header.Set("Content-Encoding", in.ContentEncoding)
	}
	res, err := f.client.Do(req)
	if err != nil {
		return fault.Wrap(err, fault.BadGateway, "The telemetry collector does not answer")
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // the details are not used
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case res.StatusCode == http.StatusBadRequest:
		return fault.New(fault.BadRequest, "The telemetry collector rejects the body")
	}
	return fault.New(fault.BadGateway, "The telemetry collector answers with status %d", res.StatusCode)
}
