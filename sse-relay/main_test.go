package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/events/redistest"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/bound"
	"github.com/longbox/longbox/sse-relay/rig"
)

// TestMain runs the test program as the relay where a test asks for one.
func TestMain(m *testing.M) {
	if os.Getenv("RELAY_TEST_PROCESS") != "" {
		bound.Child()
		main()
		return
	}
	os.Exit(m.Run())
}

// process is the relay as a program of its own.
type process struct {
	command *exec.Cmd
	address string
	output  chan string // the rest of its log, when it has ended
}

func launch(t *testing.T, environment ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0]), output: make(chan string, 1)}
	p.command.Env = append(append(os.Environ(), "RELAY_TEST_PROCESS=1"), environment...)
	out, err := p.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bound.Parent(p.command), p.command.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() }) // it has ended already where the test went well
	in := bufio.NewReader(out)
	for p.address == "" {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatalf("the relay ended before it was ready: %v", p.command.Wait())
		}
		var entry struct{ Msg, Address string }
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("a log line is not JSON: %q", line)
		}
		p.address = entry.Address
	}
	go func() {
		rest, _ := io.ReadAll(in)
		p.output <- string(rest)
	}()
	return p
}

func TestProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	api := rig.NewAPI()
	apiServer := httptest.NewServer(api)
	defer apiServer.Close()
	tenant := uuid.New()
	api.Set("Bearer x", rig.Reader(tenant))
	publisher := events.New(server.Client, events.Config{Timeout: time.Second}, nil)
	// The environment of every round.
	environment := []string{"API_URL=" + apiServer.URL, "REDIS_URL=" + server.URL, "LISTEN_ADDR=" + testkit.Address(t)}
	relay := launch(t, environment...)

	published, next, id := 0, 0, ""
	for round := range 10 { // the relay is killed in the middle of a stream, and events go on
		lines := []string{"Authorization: Bearer x"}
		if id != "" {
			lines = append(lines, "Last-Event-ID: "+id)
		}
		c, err := rig.Open(relay.address, "/api/v1/events/stream", lines...)
		if err != nil || c.Response.StatusCode != 200 {
			t.Fatalf("%+v, %v", c, err)
		}
		if id == "" {
			if _, err := c.Next(); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			if err := publisher.Publish(t.Context(), tenant, events.Event{Topic: events.Entities, Kind: "n", Data: published}); err != nil {
				t.Fatal(err)
			}
			if published++; published == 100*round+50 {
				if err := relay.command.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for {
			b, err := c.NextEvent()
			if err != nil {
				break
			}
			if b.Data != strconv.Itoa(next) {
				t.Fatalf("%s, want %d", b.Data, next)
			}
			next++
		}
		id = c.LastID
		c.Close()
		_ = relay.command.Wait() // says "killed"
		relay = launch(t, environment...)
	}
	c, err := rig.Open(relay.address, "/api/v1/events/stream", "Authorization: Bearer x", "Last-Event-ID: "+id)
	if err != nil {
		t.Fatal(err)
	}
	for ; next < published; next++ {
		if b, err := c.NextEvent(); err != nil || b.Data != strconv.Itoa(next) {
			t.Fatalf("%+v, %v: want %d", b, err, next)
		}
	}

	start := time.Now()
	if err := relay.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Next(); err != nil || b.Retry == "" {
		t.Errorf("%+v, %v: want a retry line before the end", b, err)
	}
	if _, err := c.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the retry line: %v, want the end", err)
	}
	log := <-relay.output
	if err := relay.command.Wait(); err != nil || time.Since(start) > 5*time.Second {
		t.Errorf("ended after %s: %v", time.Since(start), err)
	}
	if !strings.Contains(log, `"stopped"`) || strings.Contains(log, "Bearer") {
		t.Errorf("the log lacks the end or shows a credential: %s", log)
	}
}

// What the Redis client has to say of a Redis that is away is part of the log, or nothing: no lines of another shape.
func TestNothingBesideTheLog(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	api := rig.NewAPI()
	apiServer := httptest.NewServer(api)
	defer apiServer.Close()
	api.Set("Bearer x", rig.Reader(uuid.New()))
	relay := launch(t, "API_URL="+apiServer.URL, "REDIS_URL="+server.URL, "LISTEN_ADDR=127.0.0.1:0")
	open := func(status int) {
		t.Helper()
		c, err := rig.Open(relay.address, "/api/v1/events/stream", "Authorization: Bearer x")
		if err != nil || c.Response.StatusCode != status {
			t.Fatalf("%+v, %v: want %d", c, err, status)
		}
		defer c.Close()
	}
	open(200)
	server.Stop(t)
	for range 3 {
		open(200) // the api is asked, as Redis cannot be
	}
	if err := relay.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(<-relay.output) {
		if !json.Valid([]byte(line)) {
			t.Errorf("beside the log: %s", line)
		}
	}
	if err := relay.command.Wait(); err != nil {
		t.Error(err)
	}
}

func TestWrongSettingIsNamed(t *testing.T) {
	t.Setenv("KEEP_ALIVE", "9h")
	if err := run(); err == nil || !strings.Contains(err.Error(), "KEEP_ALIVE") {
		t.Errorf("%v, want an error that names KEEP_ALIVE", err)
	}
}

// TestImports keeps the relay free of the database and of domain code.
func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.Contains(name, "longbox/shared/domain") || strings.Contains(name, "longbox/shared/app") || strings.Contains(name, "jackc/pgx") {
			t.Errorf("the relay imports %s", name)
		}
	}
}
