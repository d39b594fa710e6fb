package lambdakit

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Front serves requests by invoking a function, like a gateway. If the function fails, it responds with 502, or closes
// the connection if the response has started.
type Front struct {
	Function *Function
	Gateway  Gateway
	Stage    Stage
	Failed   func(error) // receives failures; may be nil
}

func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, err := Event(f.Gateway, f.Stage, r)
	if err != nil {
		f.fail(w, err)
		return
	}
	ctx := context.WithoutCancel(r.Context()) // an invocation continues when the client has left
	if f.Gateway == FunctionURL {
		f.stream(ctx, w, r, event)
		return
	}
	raw, err := f.Function.Invoke(ctx, event)
	if err != nil {
		f.fail(w, err)
		return
	}
	a, err := decode(f.Gateway, raw)
	if err != nil {
		f.fail(w, err)
		return
	}
	a.write(w, r.Method)
}

func (f *Front) fail(w http.ResponseWriter, err error) {
	if f.Failed != nil {
		f.Failed(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, `{"message":"Internal Server Error"}`) // the client has left
}

// reply is a response in the format of gateways.
type reply struct {
	StatusCode        int
	StatusDescription string
	Headers           map[string]string
	MultiValueHeaders map[string][]string
	Cookies           []string
	Body              string
	IsBase64Encoded   bool

	header http.Header
	body   []byte
}

// decode reads only the fields that the gateway uses.
func decode(g Gateway, raw []byte) (*reply, error) {
	a := &reply{header: http.Header{}}
	if err := json.Unmarshal(raw, a); err != nil {
		return nil, fmt.Errorf("malformed answer %.200q: %w", raw, err)
	}
	if a.StatusCode < 100 || a.StatusCode > 599 {
		return nil, fmt.Errorf("malformed answer: status %d", a.StatusCode)
	}
	if g == RESTAPI || g == ALB {
		for k, v := range a.MultiValueHeaders {
			a.header[http.CanonicalHeaderKey(k)] = v
		}
	}
	if g != ALB {
		for k, v := range a.Headers {
			a.header.Set(k, v)
		}
	}
	if g == HTTPAPI || g == FunctionURL {
		for _, c := range a.Cookies {
			a.header.Add("Set-Cookie", c)
		}
	}
	if (g == ALB || g == ALBSingle) && !strings.HasPrefix(a.StatusDescription, strconv.Itoa(a.StatusCode)+" ") {
		return nil, fmt.Errorf("malformed answer: statusDescription %q", a.StatusDescription)
	}
	a.body = []byte(a.Body)
	if a.IsBase64Encoded {
		var err error
		if a.body, err = base64.StdEncoding.DecodeString(a.Body); err != nil {
			return nil, fmt.Errorf("malformed answer: %w", err)
		}
	}
	return a, nil
}

func (a *reply) write(w http.ResponseWriter, method string) {
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.StatusCode)
	if method != http.MethodHead {
		_, _ = w.Write(a.body) // the client has left
	}
}

// streamType marks a response that starts with status and headers in JSON, then eight zero bytes, then the body.
const streamType = "application/vnd.awslambda.http-integration-response"

func (f *Front) stream(ctx context.Context, w http.ResponseWriter, r *http.Request, event []byte) {
	s, err := f.Function.acquire(ctx)
	if err != nil {
		f.fail(w, err)
		return
	}
	defer f.Function.release(s)
	stream, err := s.Stream(ctx, event)
	if err != nil {
		f.fail(w, err)
		return
	}
	defer func() {
		if err := stream.Close(); err != nil && f.Failed != nil {
			f.Failed(err)
		}
	}()
	if t := stream.Header.Get("Content-Type"); t != streamType {
		f.fail(w, fmt.Errorf("the answer is %q, not a stream", t))
		return
	}
	a, err := prelude(stream)
	if err != nil {
		f.fail(w, err)
		return
	}
	a.body = nil
	a.write(w, http.MethodHead)
	if r.Method == http.MethodHead {
		return
	}
	if err := copyThrough(w, stream); err != nil {
		if f.Failed != nil {
			f.Failed(err)
		}
		panic(http.ErrAbortHandler) // the client must notice the truncation
	}
}

// prelude reads status and headers.
func prelude(r io.Reader) (*reply, error) {
	var head bytes.Buffer
	one := make([]byte, 1)
	for zeros := 0; zeros < 8; {
		if _, err := io.ReadFull(r, one); err != nil {
			return nil, fmt.Errorf("the stream ends within its prelude %.100q: %w", head.Bytes(), err)
		}
		zeros++
		if one[0] != 0 {
			zeros = 0
		}
		if head.WriteByte(one[0]); head.Len() > 64<<10 {
			return nil, errors.New("the prelude of the stream is longer than 64 KiB")
		}
	}
	return decode(FunctionURL, bytes.TrimRight(head.Bytes(), "\x00"))
}

// copyThrough passes each piece on as it arrives. If the client leaves, it still reads the function's response to its
// end.
func copyThrough(w http.ResponseWriter, r io.Reader) error {
	buf := make([]byte, 64<<10)
	flush := http.NewResponseController(w)
	left := false
	for {
		n, err := r.Read(buf)
		if n > 0 && !left {
			if _, e := w.Write(buf[:n]); e != nil || flush.Flush() != nil {
				left = true
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
