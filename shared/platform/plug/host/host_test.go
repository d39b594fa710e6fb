package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/confine"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/plug/host"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

func TestMain(m *testing.M) {
	pluginkit.Main()
	os.Exit(m.Run())
}

// newHost returns a host that may start the test plugin, and a function that describes it.
func newHost(t *testing.T, change func(*host.Config)) (h *host.Host, start func(args ...string) *plug.Start) {
	t.Helper()
	command, _, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	c := host.Config{Commands: plug.Commands{command}, Data: t.TempDir(), Processes: 4, Idle: time.Minute}
	if change != nil {
		change(&c)
	}
	h, err = host.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h, func(args ...string) *plug.Start {
		command, all, _ := pluginkit.Command(args...)
		return &plug.Start{Tenant: "one", ID: "1", Name: "test", Command: command, Args: all}
	}
}

// ask is the result of a method as text, or the fault.
func ask(h *host.Host, s *plug.Start, method string, params any) (string, *plug.Fault) {
	data, _ := json.Marshal(params)
	a := h.Do(context.Background(), plug.Call{Start: s, Method: method, Params: data, Timeout: 10 * time.Second})
	return string(a.Result), a.Fault
}

func TestPluginAnswers(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	s := start()
	s.Env = map[string]string{"API_KEY": "secret", "LD_PRELOAD": "/x.so", "PYTHONPATH": "/x"}
	s.Init = map[string]any{"adminConfig": map[string]any{"a": 1}}
	if a := h.Do(t.Context(), plug.Call{Start: s, Method: "initialize"}); a.Fault != nil || !strings.Contains(string(a.Manifest), `"version":"1.2.3"`) {
		t.Fatalf("%s, %v", a.Manifest, a.Fault)
	}
	if got, fault := ask(h, s, "ping", nil); fault != nil || got != `"pong"` {
		t.Fatal(got, fault)
	}
	if got, fault := ask(h, s, "test/init", nil); fault != nil || !strings.Contains(got, `"adminConfig":{"a":1}`) || !strings.Contains(got, `/one/1"`) {
		t.Fatal(got, fault)
	}
	got, fault := ask(h, s, "test/environment", nil)
	if fault != nil || !strings.Contains(got, `"API_KEY=secret"`) || strings.Contains(got, "LD_PRELOAD") || strings.Contains(got, "PYTHONPATH") {
		t.Fatal(got, fault)
	}
	var env []string
	if err := json.Unmarshal([]byte(got), &env); err != nil || len(env) != 5 { // PATH HOME TMPDIR LANG API_KEY
		t.Error("a plugin sees the environment of the host:", got)
	}
	if got, fault := ask(h, s, "test/count", nil); fault != nil || got != "5" {
		t.Errorf("not one process has answered all: %s %v", got, fault)
	}
	other := start()
	other.Tenant = "two"
	if got, fault := ask(h, other, "test/count", nil); fault != nil || got != "2" {
		t.Errorf("tenants share a process: %s %v", got, fault)
	}
	got, fault = ask(h, s, "test/ask", nil)
	if fault != nil || !strings.Contains(got, `"id":"mine"`) || !strings.Contains(got, "-32601") {
		t.Errorf("a plugin that asks is told %s, %v", got, fault)
	}
}

// When the program is told to stop, it ends the plugins at once, although a call is in progress that nobody can cancel:
// the program is killed soon, and the processes below a plugin would survive that.
func TestStopDuringACall(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	s := start()
	ctx, stop := context.WithCancel(t.Context())
	ran, answered := make(chan error, 1), make(chan *plug.Answer, 1)
	go func() { ran <- h.Run(ctx) }()
	go func() {
		answered <- h.Do(context.Background(), plug.Call{Start: s, Method: "test/hang", Known: &plug.Known{}, Timeout: 5 * time.Minute})
	}()
	asked := 1 // initialize
	testkit.Eventually(t, time.Minute, func() bool {
		asked++
		got, fault := ask(h, s, "test/count", nil)
		return fault == nil && got == strconv.Itoa(asked+1)
	})
	stop()
	testkit.Eventually(t, 20*time.Second, func() bool { return len(answered) > 0 && len(ran) > 0 })
	if a := <-answered; a.Fault == nil {
		t.Errorf("%+v", a)
	}
}

func TestPluginGoesWrong(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	for _, c := range []struct {
		name, arg, method, code, message string
	}{
		{"it ends at once", "dies", "ping", plug.ProcessEnded, "no such library"},
		{"no manifest", "nothing", "ping", plug.InitFailed, "name and capabilities"},
		{"another protocol", "newer", "ping", plug.InitFailed, `version "2.0"`},
		{"it ends", "", "test/die", plug.ProcessEnded, "out of ideas"},
		{"it logs to its output", "", "test/garbage", plug.ProcessEnded, "Hello, I am a log line"},
		{"a long line", "", "test/long", plug.ProcessEnded, "more than 1048576 bytes"},
		{"an error", "", "test/nothing", plug.RPCFailed, "no such method"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(c.arg)
			_, fault := ask(h, s, c.method, nil)
			if fault == nil || fault.Code != c.code || !strings.Contains(fault.Message, c.message) {
				t.Fatalf("%+v", fault)
			}
			if c.arg == "" { // the next one has a process that works
				if got, fault := ask(h, s, "ping", nil); fault != nil || got != `"pong"` {
					t.Error(got, fault)
				}
			}
		})
	}
	if _, fault := ask(h, start(), "metadata/series/search", map[string]any{"query": "slow down"}); fault == nil || fault.Code != plug.Limited || fault.RetryAfter != 7 {
		t.Errorf("%+v", fault)
	}
}

func TestPluginThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	if _, fault := ask(h, start(""), "ping", nil); fault != nil { // it has started
		t.Fatal(fault)
	}
	a := h.Do(t.Context(), plug.Call{Start: start(""), Method: "test/hang", Timeout: 500 * time.Millisecond})
	if a.Fault == nil || a.Fault.Code != plug.TimedOut {
		t.Errorf("%+v", a.Fault)
	}
	if got, fault := ask(h, start(""), "ping", nil); fault != nil || got != `"pong"` {
		t.Error(got, fault)
	}
}

// A caller who leaves does not end the process. Other callers of a hung process do not get an error because of that.
func TestOthersAreNotBlamed(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	if _, fault := ask(h, start(), "ping", nil); fault != nil {
		t.Fatal(fault)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := h.Do(ctx, plug.Call{Start: start(), Method: "test/hang"}); a.Fault == nil || a.Fault.Code != plug.Unavailable {
		t.Errorf("%+v", a.Fault)
	}
	count := func() (n int) {
		got, fault := ask(h, start(), "test/count", nil)
		if err := json.Unmarshal([]byte(got), &n); fault != nil || err != nil {
			t.Fatal(got, fault)
		}
		return n
	}
	last := count()
	if last < 3 {
		t.Error("the process was ended with who has left")
	}
	other := make(chan *plug.Answer)
	go func() {
		other <- h.Do(t.Context(), plug.Call{Start: start(), Method: "test/hang", Timeout: time.Minute})
	}()
	for n := count(); n == last+1; n = count() { // until the other one has asked
		last = n
	}
	if a := h.Do(t.Context(), plug.Call{Start: start(), Method: "test/hang", Timeout: 300 * time.Millisecond}); a.Fault == nil || a.Fault.Code != plug.TimedOut {
		t.Errorf("%+v", a.Fault)
	}
	if a := <-other; a.Fault == nil || a.Fault.Code != plug.Unavailable || !strings.Contains(a.Fault.Message, "another request") {
		t.Errorf("%+v", a.Fault)
	}
}

// A plugin with a changed Start gets a new process, and so does one with much output.
func TestProcessIsReplaced(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	for range 2 {
		s := start()
		s.Env = map[string]string{"A": "1"}
		if got, fault := ask(h, s, "test/count", nil); fault != nil || got != "2" {
			t.Errorf("%s %v", got, fault)
		}
		if got, fault := ask(h, start(), "test/count", nil); fault != nil || got != "2" {
			t.Errorf("%s %v", got, fault)
		}
	}
}

// A malicious plugin can neither block the host nor exhaust its memory.
func TestPluginThatMeansHarm(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	if _, fault := ask(h, start(), "test/flood", nil); fault == nil || fault.Code != plug.ProcessEnded || !strings.Contains(fault.Message, "does not read") {
		t.Errorf("%+v", fault)
	}
	began := time.Now()
	if _, fault := ask(h, start(), "test/child", nil); fault == nil || !strings.Contains(fault.Message, "exit status 5") {
		t.Errorf("%+v", fault)
	}
	h.Close()
	if took := time.Since(began); took > 30*time.Second { // it lives for a minute
		t.Errorf("what the plugin has started was waited for: %s", took)
	}
	if _, fault := ask(h, start(), "ping", nil); fault == nil || fault.Code != plug.Limited {
		t.Errorf("a host that has closed starts plugins: %+v", fault)
	}
}

func TestOnlyAllowedCommandsRun(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	for _, command := range []string{"/bin/sh", "sh", "../sh", ""} {
		s := start()
		s.Command = command
		if _, fault := ask(h, s, "ping", nil); fault == nil || fault.Code != plug.Unavailable || !strings.Contains(fault.Message, "not allowed") {
			t.Errorf("%q: %+v", command, fault)
		}
	}
	commands := plug.Commands{"node", "/opt/plugins/", "/usr/bin/python3"}
	for command, want := range map[string]bool{"node": true, "npx": false, "/usr/bin/node": false, "/opt/plugins/a/b": true, "/opt/plugins/../sh": false,
		"/opt/plugins": false, "/usr/bin/python3": true, "./node": false, "node\x00": false, "": false} {
		if commands.Allow(command) != want {
			t.Errorf("%q: %v", command, !want)
		}
	}
	for _, wrong := range []plug.Commands{{"a/b"}, {""}, {"x\x00"}, {"node", " npx"}, {"/opt//x/"}, {"/opt/../x"}} {
		if wrong.Validate() == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// askAgain retries until ending processes have made room.
func askAgain(h *host.Host, s *plug.Start, method string) (string, *plug.Fault) {
	for deadline := time.Now().Add(10 * time.Second); ; {
		got, fault := ask(h, s, method, nil)
		if fault == nil || fault.Code != plug.Limited || time.Now().After(deadline) {
			return got, fault
		}
	}
}

// The number of processes is limited; idle ones make room.
func TestProcessesAreFew(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, func(c *host.Config) { c.Processes = 2 })
	for _, name := range []string{"a", "b", "c", "a"} {
		s := start()
		s.ID = name
		if got, fault := askAgain(h, s, "test/count"); fault != nil || got != "2" {
			t.Errorf("%s: %s %v", name, got, fault)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, name := range []string{"d", "e"} {
		s := start()
		s.ID = name
		if _, fault := askAgain(h, s, "ping"); fault != nil {
			t.Fatal(fault)
		}
		all.Go(func() {
			for ctx.Err() == nil { // it may have lost its place to f meanwhile
				h.Do(ctx, plug.Call{Start: s, Method: "test/hang", Timeout: time.Minute})
			}
		})
	}
	defer func() { cancel(); all.Wait() }()
	s := start()
	s.ID = "f"
	for deadline := time.Now().Add(10 * time.Second); ; { // until both hang
		_, fault := ask(h, s, "ping", nil)
		if fault != nil && fault.Code == plug.Limited && strings.Contains(fault.Message, "busy") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", fault)
		}
	}
}

// A confined plugin reads system files, and neither reads nor writes data of users and of Longbox.
func TestPluginIsConfined(t *testing.T) {
	t.Parallel()
	command, _, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	h, start := newHost(t, func(c *host.Config) { c.Confine, c.Folders = true, []string{filepath.Dir(command)} })
	s := start()
	_, fault := ask(h, s, "test/read", map[string]string{"path": "/etc/hosts"})
	if err := confine.Offered(confine.Moving); err != nil { // then it does not run at all
		if fault == nil || fault.Code != plug.Unavailable {
			t.Errorf("%v, but the plugin runs: %+v", err, fault)
		}
		return
	}
	if fault != nil {
		t.Fatal(fault)
	}
	if _, fault := ask(h, s, "test/write", map[string]string{"path": "own"}); fault != nil { // in its data folder
		t.Fatal(fault)
	}
	for _, c := range []struct{ method, path string }{{"test/read", secret}, {"test/write", secret}, {"test/write", filepath.Join(filepath.Dir(command), "new")},
		{"test/write", "/etc/new"}, {"test/read", "/etc/shadow"}, {"test/read", "/proc/" + "1" + "/environ"}, {"test/read", "/proc/self/../" + itoa(os.Getpid()) + "/environ"}} {
		if got, fault := ask(h, s, c.method, map[string]string{"path": c.path}); fault == nil || !strings.Contains(fault.Message, "permission denied") {
			t.Errorf("%s %s: %s %v", c.method, c.path, got, fault)
		}
	}
}

func itoa(n int) string { data, _ := json.Marshal(n); return string(data) }
