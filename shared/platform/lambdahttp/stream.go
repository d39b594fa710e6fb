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
			slog.Error("no answer before the invocation's time limit", "method", e.RequestContext.HTTP.Method, "path", e.RawPath)
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
	e, _ := lambdaurl.RequestFromContext(r.Context()) // set by Wrap
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

// clientsOwn restores the client's Authorization header. CloudFront calls a function URL with its own signature in
// Authorization. It passes the client's value in X-Forwarded-Authorization.
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

// tracked records whether the status was sent.
type tracked struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader sends the first status only, like a server.
func (t *tracked) WriteHeader(status int) {
	if !t.begun {
		t.begun = true
		t.ResponseWriter.WriteHeader(status)
	}
}

// Write sets the status to 200 if none was set.
func (t *tracked) Write(p []byte) (int, error) {
	t.begun = true
	return t.ResponseWriter.Write(p)
}

// open makes the response readable. It is interrupted when the time is up, even if the handler ignores its context.
func (s *stream) open(body io.Reader, limit time.Duration) {
	s.body = body
	s.timer = time.AfterFunc(limit, func() {
		s.breakOff(errors.New("the answer took longer than the invocation's time limit"))
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

// Read returns what the handler writes. An interrupted response ends with an error, not with io.EOF, so that the
// runtime reports it as an error of the function.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	if err == nil {
		return n, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		slog.Error("streaming the answer failed", "error", s.broken)
		err = s.broken
	}
	return n, err
}

// Close ends the response: the handler's next write fails.
func (s *stream) Close() error {
	s.timer.Stop()
	s.closeBody()
	s.finish()
	return nil
}

func (s *stream) closeBody() {
	if c, ok := s.body.(io.Closer); ok {
		_ = c.Close() // a pipe: never fails
	}
}

// plain is a response without the handler.
func plain(status int, word, message string, finish func()) *urlAnswer {
	header, body := problem(status, word, message)
	return &urlAnswer{StatusCode: status, Headers: header, Body: &closing{strings.NewReader(body), finish}}
}

type closing struct {
	io.Reader
	finish func()
}

func (c *closing) Close() error { c.finish(); return nil }
