package testkit

import (
	"net/http"
	"testing"
	"time"
)

// noted keeps that a test failed to itself.
type noted struct {
	testing.TB
	failed bool
}

func (n *noted) Errorf(string, ...any) { n.failed = true }

// A goroutine that asks a server that is not there has its answer, and the test has failed: nobody waits for ever.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	n := &noted{TB: t}
	c := &Client{t: n, base: "http://" + Address(t), Header: http.Header{}}
	answer := make(chan *Response, 1)
	go func() { answer <- c.Do("GET", "/", nil) }()
	select {
	case r := <-answer:
		if r.Status != 0 || !n.failed {
			t.Errorf("status %d, failed: %v", r.Status, n.failed)
		}
	case <-time.After(time.Minute):
		t.Fatal("no answer")
	}
}
