package host

import (
	"context"
	"encoding/json"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/plug"
)

// A plugin is not called for a caller who left before the desk was free.
func TestWhoHasLeftIsNotServed(t *testing.T) {
	t.Parallel()
	p := &process{out: make(chan []byte, 1), ended: make(chan struct{}), serving: make(chan struct{}, 1), waiting: map[int64]chan message{}}
	var asked atomic.Int32
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for line := range p.out {
			asked.Add(1)
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Error(err)
			}
			id, err := strconv.ParseInt(string(m.ID), 10, 64)
			if err != nil {
				t.Error(err)
			}
			p.mu.Lock()
			p.waiting[id] <- message{Result: json.RawMessage("1")}
			p.mu.Unlock()
		}
	}()
	call := plug.Call{Method: "test", Known: &plug.Known{}}
	left, leave := context.WithCancel(t.Context())
	leave()
	for range 50 {
		if _, _, fault := p.serve(left, call, time.Minute); fault == nil {
			t.Error("who has left is answered")
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the plugin was asked %d times", n)
	}
	if got, _, fault := p.serve(t.Context(), call, time.Minute); fault != nil || string(got) != "1" {
		t.Errorf("the next one: %s, %v", got, fault)
	}
	close(p.out)
	<-answered
}
