package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/plug/host"
)

type asks = []map[string]any

// keeping makes a plugin send requests one after the other during a call, and returns the responses and changes.
func keeping(t *testing.T, h *host.Host, s *plug.Start, storage map[string]plug.Stored, all asks) (told []string, changed map[string]*plug.Stored) {
	t.Helper()
	params, err := json.Marshal(map[string]any{"calls": all})
	if err != nil {
		t.Fatal(err)
	}
	a := h.Do(t.Context(), plug.Call{Start: s, Method: "test/calls", Params: params, Known: &plug.Known{Storage: storage}, Timeout: 30 * time.Second})
	if a.Fault != nil {
		t.Fatal(a.Fault)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(a.Result, &raw); err != nil {
		t.Fatal(err)
	}
	for _, r := range raw {
		told = append(told, string(r))
	}
	return told, a.Changes.Storage
}

func call(method string, params any) map[string]any {
	return map[string]any{"method": method, "params": params}
}

func key(k string) map[string]any { return map[string]any{"key": k} }

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	past, later := time.Now().Add(-time.Minute), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	stored := map[string]plug.Stored{"a": {Data: json.RawMessage(`{"x":1}`), ExpiresAt: &later}, "old": {Data: json.RawMessage(`1`), ExpiresAt: &past}}
	told, changed := keeping(t, h, start(), stored, asks{
		call("storage/get", key("a")), call("storage/get", key("old")), call("storage/get", key("none")), call("storage/delete", key("old")),
		call("storage/set", map[string]any{"key": "b", "data": []int{1}}), call("storage/get", key("b")), call("storage/list", nil),
		call("storage/delete", key("a")), call("storage/get", key("a")), call("releases/record", nil)})
	for i, want := range []string{`"data":{"x":1}`, `"data":null`, `"data":null`, `"deleted":false`, `"success":true`, `"data":[1]`, `"keys":[{"key":"a",`, `"deleted":true`,
		`"data":null`, "-32601"} {
		if !strings.Contains(told[i], want) {
			t.Errorf("%d: %s", i, told[i])
		}
	}
	if !strings.Contains(told[0], later.Format(time.RFC3339)) || strings.Contains(told[6], "old") {
		t.Error(told[0], told[6])
	}
	if len(changed) != 3 || changed["a"] != nil || changed["old"] != nil || string(changed["b"].Data) != "[1]" {
		t.Errorf("%v", changed)
	}
	told, changed = keeping(t, h, start(), map[string]plug.Stored{"a": {Data: json.RawMessage(`1`)}, "old": {Data: json.RawMessage(`1`), ExpiresAt: &past}}, asks{
		call("storage/clear", nil), call("storage/list", nil)})
	if !strings.Contains(told[0], `"deletedCount":1`) || !strings.Contains(told[1], `"keys":[]`) || len(changed) != 2 {
		t.Error(told, changed)
	}
}

func TestWhatIsNotKept(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	full := map[string]plug.Stored{}
	for i := range plug.MaxKeys {
		full[strings.Repeat("k", i+1)] = plug.Stored{Data: json.RawMessage(`1`)}
	}
	for name, c := range map[string]struct {
		storage map[string]plug.Stored
		call    map[string]any
		refused bool
	}{
		"one key too many":         {full, call("storage/set", map[string]any{"key": "b", "data": 1}), true},
		"a key that is there":      {full, call("storage/set", map[string]any{"key": "k", "data": 2}), false},
		"too much":                 {map[string]plug.Stored{"a": {Data: json.RawMessage(`"` + strings.Repeat("x", plug.MaxStorage-3) + `"`)}}, call("storage/set", map[string]any{"key": "b", "data": 1}), true},
		"instead of too much":      {map[string]plug.Stored{"a": {Data: json.RawMessage(`"` + strings.Repeat("x", plug.MaxStorage-3) + `"`)}}, call("storage/set", map[string]any{"key": "a", "data": 1}), false},
		"no key":                   {full, call("storage/set", map[string]any{"data": 1}), true},
		"a long key":               {full, call("storage/get", key(strings.Repeat("k", plug.MaxKey+1))), true},
		"a key with NUL":           {full, call("storage/get", key("a\x00")), true},
		"no data":                  {map[string]plug.Stored{}, call("storage/set", key("a")), true},
		"another type":             {map[string]plug.Stored{}, call("storage/set", []int{1}), true},
		"no time":                  {map[string]plug.Stored{}, call("storage/set", map[string]any{"key": "a", "data": 1, "expiresAt": "tomorrow"}), true},
		"of a plugin for nobody":   {nil, call("storage/get", key("a")), true},
		"cleared, of one for none": {nil, call("storage/clear", nil), false},
	} {
		told, changed := keeping(t, h, start(), c.storage, asks{c.call})
		if refused := strings.Contains(told[0], "-32602"); refused != c.refused || refused && len(changed) > 0 {
			t.Errorf("%s: %s, %v", name, told[0], changed)
		}
	}
}

// Calls with data run one after the other in a process: a plugin cannot access the storage of one user on behalf of
// another, nor after the response.
func TestDesksDoNotMeet(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	s := start()
	done := make(chan string)
	for _, name := range []string{"one", "two", "three", "four"} {
		go func() {
			params, _ := json.Marshal(map[string]any{"calls": asks{call("storage/get", key("name")), call("storage/set", map[string]any{"key": "name", "data": name + "!"}), call("storage/get", key("name"))}})
			a := h.Do(t.Context(), plug.Call{Start: s, Method: "test/calls", Params: params, Known: &plug.Known{Storage: map[string]plug.Stored{"name": {Data: json.RawMessage(`"` + name + `"`)}}}})
			if a.Fault != nil || !strings.Contains(string(a.Result), `"data":"`+name+`"`) || !strings.Contains(string(a.Result), `"data":"`+name+`!"`) || string(a.Changes.Storage["name"].Data) != `"`+name+`!"` {
				done <- fmt.Sprint(string(a.Result), a.Fault)
				return
			}
			done <- ""
		}()
	}
	for range 4 {
		if wrong := <-done; wrong != "" {
			t.Error(wrong)
		}
	}
	if got, fault := ask(h, s, "test/ask", nil); fault != nil || !strings.Contains(got, "-32601") {
		t.Error("it is answered when nobody has asked for a user:", got, fault)
	}
}

// A plugin continues with the request of a caller who has left. The next caller waits, so their storage is not accessed
// for it.
func TestWhoLeavesDoesNotMeetTheNext(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	s := start()
	params, err := json.Marshal(map[string]any{"calls": asks{call("storage/get", key("name"))}})
	if err != nil {
		t.Fatal(err)
	}
	of := func(ctx context.Context, name, method string, timeout time.Duration) *plug.Answer {
		known := &plug.Known{Storage: map[string]plug.Stored{"name": {Data: json.RawMessage(`"` + name + `"`)}}}
		return h.Do(ctx, plug.Call{Start: s, Method: method, Params: params, Known: known, Timeout: timeout})
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan *plug.Answer, 1)
	go func() { left <- of(ctx, "one", "test/later", time.Minute) }()
	for has := "false"; has != "true"; { // until the plugin has it
		var fault *plug.Fault
		if has, fault = ask(h, s, "test/has", nil); fault != nil {
			t.Fatal(fault)
		}
	}
	leave()
	if a := of(t.Context(), "two", "test/calls", 300*time.Millisecond); a.Fault == nil || !strings.Contains(a.Fault.Message, "busy") {
		t.Errorf("another one is served meanwhile: %s %v", a.Result, a.Fault)
	}
	if got, fault := ask(h, s, "test/now", nil); fault != nil || !strings.Contains(got, `"data":"one"`) {
		t.Errorf("what was begun for one is told %s, %v", got, fault)
	}
	<-left
	if a := of(t.Context(), "two", "test/calls", time.Minute); a.Fault != nil || !strings.Contains(string(a.Result), `"data":"two"`) {
		t.Errorf("%s %v", a.Result, a.Fault)
	}
}
