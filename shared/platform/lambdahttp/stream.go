package lambdahttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdaurl"
)

type (
	urlRequest = events.LambdaFunctionURLRequest
	urlAnswer  = events.LambdaFunctionURLStreamingResponse
)

// streams handles the events of a streaming function URL.
func streams(handler http.Handler, after After) func(context.Context, *urlRequest) (*urlAnswer, error) {
	return func(ctx context.Context, e *urlRequest) (*urlAnswer, error) {
		if e.RequestContext.HTTP.Method == "" {
			return nil, errEvent
		}
		ctx = identified(ctx)
		work, cancel := workTime(ctx)
		s := &stream{handler: handler, finish: func() { cancel(); bounded(ctx, after, quickAfter) }}
		begun := make(chan begin, 1)
		go func() {
			res, err := lambdaurl.Wrap(s)(work, e)
			begun <- begin{res, err}
		}()
		select {
		case b := <-begun:
			if b.err != nil { // only the URL can be invalid
				return plain(http.StatusBadRequest, "BadRequest", malformed, s.finish), nil
			}
			s.open(b.Body, answerTime(ctx))
			b.Body = s
			return b.urlAnswer, nil
		case <-time.After(answerTime(ctx)):
			slog.Error("no answer within the invocation's time", "method", e.RequestContext.HTTP.Method, "path", e.RawPath)
			go func() {
				if b := <-begun; b.err == nil {
					_ = b.urlAnswer.Close() // the handler's writes fail from now on
				}
			}()
			return plain(http.StatusServiceUnavailable, "ServiceUnavailable", tookTooLong, s.finish), nil
		}
	}
}

type begin struct {
	*urlAnswer
	err error
}

// stream is one streamed response: the handler writes it, the runtime reads it.
type stream struct {
	handler http.Handler
	body    io.Reader // read end of a pipe
	finish  func()
	timer   *time.Timer

	mu     sync.Mutex
	broken error // what interrupted the response
}

// ServeHTTP corrects the request and recovers panics.
func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, _ := lambdaurl.RequestFromContext(r.Context()) // Wrap put it there
	r = corrected(r, clientsOwn(joined(e.Headers, e.Cookies)), e.RequestContext.HTTP.SourceIP, true)
	t := &tracked{ResponseWriter: w}
	defer func() {
		switch p := recover(); {
		case p == nil:
		case t.begun:
			s.breakOff(fmt.Errorf("the answer broke off: %v", p))
		default:
			tellPanic(p)
			failed(w)
		}
	}()
	s.handler.ServeHTTP(t, r)
}

// clientsOwn puts the client's credential where it belongs. Behind CloudFront the address of a function is called with
// CloudFront's own signature in Authorization; what the client sent there comes in X-Forwarded-Authorization.
func clientsOwn(h http.Header) http.Header {
	if strings.HasPrefix(h.Get("Authorization"), "AWS4-") {
		h.Del("Authorization")
	}
	if own := h.Get("X-Forwarded-Authorization"); own != "" {
		h.Set("Authorization", own)
		h.Del("X-Forwarded-Authorization")
	}
	return h
}

// tracked knows whether the status is out.
type tracked struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader counts once, as with a server.
func (t *tracked) WriteHeader(status int) {
	if !t.begun {
		t.begun = true
		t.ResponseWriter.WriteHeader(status)
	}
}

// Write makes the status 200 where there is none.
func (t *tracked) Write(p []byte) (int, error) {
	t.begun = true
	return t.ResponseWriter.Write(p)
}

// open lets the answer be read; it breaks off when the time is up, even if the handler does not notice.
func (s *stream) open(body io.Reader, limit time.Duration) {
	s.body = body
	s.timer = time.AfterFunc(limit, func() {
		s.breakOff(errors.New("the answer took longer than the invocation may"))
		s.closeBody()
	})
}

func (s *stream) breakOff(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
}

// Read passes on what the handler writes. An answer that broke off ends with an error, not with io.EOF: the runtime
// reports it as the function's.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err == nil {
		return n, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		slog.Error("stream", "error", s.broken)
		err = s.broken
	}
	return n, err
}

// Close ends the answer, wanted or not: the handler's next write fails.
func (s *stream) Close() error {
	s.timer.Stop()
	s.closeBody()
	s.finish()
	return nil
}

func (s *stream) closeBody() {
	if c, ok := s.body.(io.Closer); ok {
		_ = c.Close() // a pipe: it never fails
	}
}

// plain is an answer of our own.
func plain(status int, word, message string, finish func()) *urlAnswer {
	header, body := problem(status, word, message)
	return &urlAnswer{StatusCode: status, Headers: header, Body: &closing{strings.NewReader(body), finish}}
}

type closing struct {
	io.Reader
	finish func()
}

func (c *closing) Close() error { c.finish(); return nil }
