package host

import (
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

// A start that has taken too long is not waited for: in the cloud the machine was stopped meanwhile. A call that did
// not wait for a whole start does not blame the plugin.
func TestStartsThatTakeLong(t *testing.T) {
	t.Parallel()
	command, args, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{Commands: plug.Commands{command}, Data: t.TempDir(), Processes: 2, Idle: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	s := &plug.Start{Tenant: "one", ID: "1", Name: "test", Command: command, Args: args}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	givenUp := false
	at := &slot{sum: sha256.Sum256(data), ready: make(chan struct{}), giveUp: func() { givenUp = true }, began: time.Now()}
	h.slots[plugin{"one", "1"}] = at
	call := plug.Call{Start: s, Method: "ping", Timeout: 300 * time.Millisecond}
	if a := h.Do(t.Context(), call); a.Fault == nil || a.Fault.Code != plug.Unavailable || givenUp {
		t.Errorf("%+v", a.Fault)
	}
	at.began = time.Now().Add(-startTime - time.Second)
	call.Timeout = 30 * time.Second
	if a := h.Do(t.Context(), call); a.Fault != nil || string(a.Result) != `"pong"` || !givenUp {
		t.Errorf("%+v", a.Fault)
	}
}
