package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
)

// programs is the folder of the built functions while the tests run through them; "" while they run in this process.
var programs string

// TestMain runs every test twice: with the routers in this process, and with the built functions under the Lambda runtime
// API. E2E=process or E2E=functions runs one of the two; so does -short, the first.
func TestMain(m *testing.M) {
	flag.Parse()
	mode := os.Getenv("E2E")
	os.Exit(func() int {
		status := 0
		if mode != "functions" {
			status = m.Run()
		}
		if mode == "process" || testing.Short() && mode == "" {
			return status
		}
		dir, err := os.MkdirTemp("", "longbox-functions-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		began := time.Now()
		if err := lambdakit.Build(dir, "api", "media", "worker"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		built := time.Since(began)
		programs, began = dir, time.Now()
		if s := m.Run(); s != 0 {
			fmt.Fprintln(os.Stderr, "the tests above ran through the built functions; E2E=functions runs only those")
			status = s
		}
		fmt.Fprintf(os.Stderr, "functions: built in %.0f s, tests took %.0f s\n", built.Seconds(), time.Since(began).Seconds())
		return status
	}())
}

// instances is how many processes of a function there are at most.
const instances = 4

// log is what a system's functions wrote; it is shown when the test fails.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() > 1<<20 {
		return len(p), nil
	}
	return l.b.Write(p)
}

// String is all of it; nothing where the tests run in this process.
func (l *log) String() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *log) showFailed(t testing.TB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Failed() {
		t.Logf("the functions' log ends with:\n%s", l.b.Bytes()[max(0, l.b.Len()-8000):])
	}
}

// functions makes what answers requests by invoking the built programs: api behind an HTTP API, media behind a streaming
// function URL.
func (s *system) functions(documents api.Config, images media.Config) (toAPI, toMedia http.Handler) {
	s.log = &log{}
	s.t.Cleanup(func() { s.log.showFailed(s.t) })
	front := func(name string, g lambdakit.Gateway, config any) http.Handler {
		f := lambdakit.New(lambdakit.Program{Name: name, Path: filepath.Join(programs, name), Env: environment(config), Output: s.log}, instances)
		s.t.Cleanup(f.Close)
		return &lambdakit.Front{Function: f, Gateway: g, Failed: func(err error) { fmt.Fprintln(s.log, name, "failed:", err) }}
	}
	return front("api", lambdakit.HTTPAPI, documents), front("media", lambdakit.FunctionURL, images)
}

// environment is that of a function with the configuration, and the credentials of the store.
func environment(config any) []string {
	env := lambdakit.Environment(config)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

// work gives the built worker, under the runtime API, a message for every task that waits, in batches as a queue does,
// until stop is called.
func (s *system) work(c worker.Config) (stop func()) {
	f := lambdakit.New(lambdakit.Program{Name: "worker", Path: filepath.Join(programs, "worker"), Env: environment(c), Output: s.log}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.pump(ctx, f) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("worker: %v", err)
		}
		f.Close()
	}
}

func (s *system) pump(ctx context.Context, f *lambdakit.Function) error {
	for ctx.Err() == nil {
		rows, err := s.DB.Owner.Pool().Query(ctx, `select json_build_object('tenant', tenant_id, 'task', id)::text from task
			where status = 'pending' and scheduled_for <= now() order by priority desc, scheduled_for limit 10`)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		bodies, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		if len(bodies) == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		var messages []lambdakit.Message
		for i, body := range bodies {
			messages = append(messages, lambdakit.Message{ID: fmt.Sprint(i), Body: body})
		}
		var answer events.SQSEventResponse // what failed still waits, and comes again
		if err := f.Call(context.WithoutCancel(ctx), lambdakit.SQSEvent("tasks", messages...), &answer); err != nil {
			return err
		}
	}
	return nil
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
