package lambdahttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A client that never sends the announced body does not keep the connection, and gets a response.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	s := server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	if s.ReadTimeout <= 0 {
		t.Fatal("the server waits for it for ever")
	}
	s.ReadTimeout = 50 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l) //nolint:errcheck // until it is closed
	defer s.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: acme\r\nContent-Length: 1000\r\n\r\n")
	read := bufio.NewReader(c)
	res, err := http.ReadResponse(read, nil)
	if err != nil || res.StatusCode != http.StatusUnauthorized {
		t.Fatalf("%v, %v", res, err)
	}
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Errorf("the connection does not end: %v", err)
	}
}

func TestBesideEndsWithEither(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	t.Setenv("LISTEN_ADDR", taken.Addr().String())
	worked := false
	if err := Beside(http.NotFoundHandler(), func(context.Context) error { worked = true; return nil }); err == nil || worked {
		t.Errorf("an address that is taken: %v, worked: %v", err, worked)
	}
	t.Setenv("LISTEN_ADDR", "127.0.0.1:0")
	failure := errors.New("no more")
	if err := Beside(http.NotFoundHandler(), func(context.Context) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("work that ends: %v", err)
	}
}

// An endless download is cut off, and the program exits without an error.
func TestShutdownCutsOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	srv := server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	go func() { _ = srv.Serve(l) }()
	res, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := shutdown(srv, time.Millisecond); err != nil {
		t.Error(err)
	}
	<-ended
}
