package blob

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A store that stops in the middle of a response does not block its reader forever, however the response is read.
func TestAStoreThatStalls(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	store := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/told" {
			rw.Header().Set("Content-Length", "100000")
		}
		_, _ = rw.Write(pattern(50_000))
		_ = http.NewResponseController(rw).Flush()
		<-ended
	})
	plain, secure := httptest.NewServer(store), httptest.NewTLSServer(store)
	defer plain.Close()
	defer secure.Close()
	defer close(ended)
	w := newWire()
	w.within = time.Second
	read := func(res *http.Response) error { _, err := io.ReadAll(res.Body); return err }
	for name, c := range map[string]struct {
		by   http.RoundTripper
		url  string
		read func(*http.Response) error
	}{
		"read":           {w, plain.URL + "/told", read},
		"copied":         {w, plain.URL + "/told", func(res *http.Response) error { _, err := res.Body.(io.WriterTo).WriteTo(io.Discard); return err }},
		"without length": {w, plain.URL, read},
		"TLS":            {&prompt{secure.Client().Transport.RoundTrip, w.within}, secure.URL, read},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.by.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.read(res); !Unreachable(err) || ctx.Err() != nil {
			t.Errorf("%s: %v, want that the store is not reachable", name, err)
		}
		res.Body.Close()
		cancel()
	}
}

// stalling is a body whose only byte comes when its request is cancelled.
type stalling struct {
	io.ReadCloser
	ctx  context.Context
	read bool
}

func (b *stalling) Read(p []byte) (int, error) {
	if b.read {
		return 0, b.ctx.Err()
	}
	<-b.ctx.Done()
	b.read = true
	return copy(p, "x"), nil
}

// A stall is one also when the last bytes come just as it is noticed.
func TestAStallAfterTheLastBytes(t *testing.T) {
	t.Parallel()
	send := func(r *http.Request) (*http.Response, error) {
		return &http.Response{Body: &stalling{ctx: r.Context()}}, nil
	}
	res, err := (&prompt{send, 10 * time.Millisecond}).Do(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(res.Body); string(b) != "x" || !errors.Is(err, ErrCut) {
		t.Errorf("%q, %v, want that the store is not reachable", b, err)
	}
}

// A caller who cancels in the middle of a response gets that error, and not that the store has stalled.
func TestAnAskerWhoLeaves(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	store := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = rw.Write(pattern(100))
		_ = http.NewResponseController(rw).Flush()
		close(begun)
		<-ended
	}))
	defer store.Close()
	defer close(ended)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, store.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&prompt{store.Client().Transport.RoundTrip, time.Minute}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	go func() { <-begun; cancel() }()
	if _, err := io.ReadAll(res.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the asker has left", err)
	}
}

// The SDK's requests do not block either when a response stops after its header.
func TestAnAnswerToTheSDKThatStalls(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	ended := make(chan struct{})
	store := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(rw, "<InitiateMultipartUploadResult>")
		_ = http.NewResponseController(rw).Flush()
		<-ended
	}))
	defer store.Close()
	defer close(ended)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	opened := open(store.URL, Config{PathStyle: true, Region: "us-east-1"}, 500*time.Millisecond)
	_, err := opened.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: aws.String("b"), Key: aws.String("k")})
	if !Unreachable(err) || ctx.Err() != nil {
		t.Errorf("%v, want that the store is not reachable", err)
	}
}

// An unwanted response of unknown length is not read to its end.
func TestAnUnwantedAnswerIsLeft(t *testing.T) {
	t.Parallel()
	url, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := rw.Write(pattern(100_000)); err != nil {
				return
			}
		}
	})
	res, err := fetch(t, newWire(), t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- res.Body.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it is read on and on")
	}
}

// A reader who pauses longer than a store may stall still gets the whole response.
func TestASlowReaderIsNoStall(t *testing.T) {
	t.Parallel()
	data := pattern(16 << 20)
	from, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = rw.Write(data)
	})
	w := newWire()
	w.within = time.Second
	to, _, _ := served(t, func(rw http.ResponseWriter, r *http.Request) {
		res, err := fetch(t, w, r.Context(), from)
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		rw.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if n, err := res.Body.(*body).CopyN(rw, int64(len(data))); err != nil || n != int64(len(data)) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	res, err := http.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	<-time.After(3 * w.within)
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != int64(len(data)) {
		t.Errorf("%d bytes, %v", n, err)
	}
}
