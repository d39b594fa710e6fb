package lambdahttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
)

// maxAnswer limits a buffered response, in bytes: slightly less than Lambda's limit.
const maxAnswer = 6<<20 - 1<<10

// After sends what is pending after an invocation. Its context limits the time.
type After func(ctx context.Context)

type (
	v2  = events.APIGatewayV2HTTPResponse
	v1  = events.APIGatewayProxyResponse
	alb = events.ALBTargetGroupResponse
)

// buffered is the common interface of the api-proxy's writers, which buffer a response.
type buffered[T any] interface {
	http.ResponseWriter
	GetProxyResponse() (T, error)
}

// answers handles the events of all gateways. A response that is too large for Lambda would fail the invocation, as if
// the function were broken. So it becomes an error, and the client can ask for less.
func answers(handler http.Handler, after After) func(ctx context.Context, payload json.RawMessage) (any, error) {
	return func(ctx context.Context, payload json.RawMessage) (any, error) {
		ctx = identified(ctx)
		data, err := answer(ctx, payload, handler)
		if n := len(data); n > maxAnswer {
			data, err = answer(ctx, payload, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				slog.Error("the answer is larger than Lambda allows", "method", r.Method, "path", r.URL.Path, "bytes", n, "limit", maxAnswer)
				refuse(w, http.StatusBadRequest, "BadRequest", tooLarge)
			}))
		}
		if err != nil {
			return nil, err
		}
		return &reply{Reader: bytes.NewReader(data), after: func() { bounded(ctx, after, quickAfter) }}, nil
	}
}

// answer returns the gateway's response to its event.
func answer(ctx context.Context, payload json.RawMessage, handler http.Handler) ([]byte, error) {
	var r *http.Request
	var err error
	var respond func() (any, error) // handles r
	switch kindOf(payload) {
	case version2:
		r, err = fromVersion2(ctx, payload)
		respond = func() (any, error) {
			return handle(handler, r, func() buffered[v2] { return core.NewProxyResponseWriterV2() })
		}
	case version1:
		r, err = fromVersion1(ctx, payload)
		respond = func() (any, error) {
			return handle(handler, r, func() buffered[v1] { return core.NewProxyResponseWriter() })
		}
	case balancer:
		var multi bool
		r, multi, err = fromBalancer(ctx, payload)
		respond = func() (any, error) {
			a, err := handle(handler, r, func() buffered[alb] { return core.NewProxyResponseWriterALB() })
			return forBalancer(a, multi), err
		}
	default:
		err = errEvent
	}
	// The gateway passed on a malformed URL or host: the client gets an error, as from a server.
	if errors.Is(err, errMalformed) {
		slog.Warn("malformed request", "error", err)
		r, err = (&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}}).WithContext(ctx), nil
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusBadRequest, "BadRequest", malformed)
		})
	}
	if err != nil {
		return nil, err
	}
	body, err := respond()
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // an escape takes six bytes for each <
	err = enc.Encode(body)
	return data.Bytes(), err
}

// handle runs the handler within the invocation's time. A late response is ignored: a fresh writer takes the error.
func handle[T any](handler http.Handler, r *http.Request, writer func() buffered[T]) (T, error) {
	ctx, cancel := workTime(r.Context())
	defer cancel()
	w, done := writer(), make(chan bool, 1) // reports whether the handler has panicked
	go func() {
		defer func() {
			p := recover()
			if p != nil {
				tellPanic(p)
			}
			done <- p != nil
		}()
		t := &tracked{ResponseWriter: w}
		handler.ServeHTTP(t, r.WithContext(ctx))
		if !t.begun {
			t.WriteHeader(http.StatusOK) // as a server does
		}
	}()
	select {
	case panicked := <-done:
		if panicked { // nothing of a response has been sent yet
			w = writer()
			failed(w)
		}
		return w.GetProxyResponse()
	case <-time.After(answerTime(r.Context())):
		slog.Error("no answer before the invocation's time limit", "method", r.Method, "path", r.URL.Path)
		refusal := writer()
		refuse(refusal, http.StatusServiceUnavailable, "ServiceUnavailable", tookTooLong)
		return refusal.GetProxyResponse()
	}
}

// tellPanic logs a recovered panic. It must be called in the deferred function that recovers it.
func tellPanic(p any) {
	if p != http.ErrAbortHandler { // logged by the code that caused it
		slog.Error("panic", "error", p, "stack", string(debug.Stack()))
	}
}

// failed responds for a handler that panicked before it wrote anything.
func failed(w http.ResponseWriter) {
	clear(w.Header())
	refuse(w, http.StatusBadGateway, "InternalServerError", "An internal error occurred")
}

const (
	tookTooLong = "This took too long; try again"
	malformed   = "The address of the request is malformed"
	tooLarge    = "The answer is too large to be sent; ask for less at once, for example with a smaller pageSize"
)

// refuse responds in the API's error format.
func refuse(w http.ResponseWriter, status int, word, message string) {
	header, body := problem(status, word, message)
	for k, v := range header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // a buffer, or the client has left
}

func problem(status int, word, message string) (header map[string]string, body string) {
	header = map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"}
	later := ""
	if status == http.StatusServiceUnavailable {
		header["Retry-After"], later = "1", `,"retry_after":1`
	}
	return header, fmt.Sprintf(`{"error":%q,"message":%q,"details":null%s}`, word, message, later)
}

// forBalancer adapts a response to the load balancer: with multi-value headers it reads only those, otherwise only the
// others.
func forBalancer(a alb, multi bool) alb {
	a.StatusDescription = fmt.Sprint(a.StatusCode, " ", http.StatusText(a.StatusCode))
	if multi {
		return a
	}
	a.Headers = map[string]string{}
	for k, v := range a.MultiValueHeaders {
		a.Headers[k] = strings.Join(v, ", ")
		if k == "Set-Cookie" {
			a.Headers[k] = v[len(v)-1] // cookies cannot be joined
		}
	}
	a.MultiValueHeaders = nil
	return a
}

// reply is a response that runs after when the runtime has read it, so that the client does not wait for that.
type reply struct {
	*bytes.Reader
	after func()
}

func (*reply) ContentType() string { return "application/json" }

func (r *reply) Close() error { r.after(); return nil }

// MarshalJSON fails, so that the runtime uses the reader instead.
func (*reply) MarshalJSON() ([]byte, error) { return nil, errors.New("read it") }
