package e2e_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
	"github.com/longbox/longbox/shared/testkit/sqs"
)

// programs is the folder of the built functions while the tests run through them, or "" while they run in this process.
var programs string

// TestMain runs every test twice: with the routers in this process, where tasks wait in their table, and with the built
// functions under the Lambda runtime API, where tasks travel through a queue and a pooler in transaction mode stands
// before the database, as RDS Proxy does. E2E=process or E2E=functions runs only one of the two; -short runs only the
// first.
func TestMain(m *testing.M) {
	pluginkit.Main()
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
		if err := lambdakit.Build(dir, "api", "media", "worker", "plugin", "scheduler", "operator", "migrate"); err != nil {
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

// instances is the maximum number of processes of a function.
const instances = 4

// log is the output of a system's functions. It is shown if the test fails.
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

// String returns the whole log. It is empty if the tests run in this process.
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

// functions returns handlers that invoke the built programs: api behind an HTTP API, media behind a streaming function
// URL.
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

// environment returns the variables of a function with this configuration and the store's credentials.
func environment(config any) []string {
	env := lambdakit.Environment(config)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

// withTasks adds to the configuration a queue of tasks, and one of tasks that failed too often.
func withTasks(t testing.TB, c queue.Config) queue.Config {
	server := sqs.Start(t)
	c.Region, c.Window, c.Resend = "us-east-1", 8, 2*time.Second
	c.DeadURL = server.Queue("dead", 30*time.Second, "", 0)
	c.TaskURL = server.Queue("tasks", 30*time.Second, "dead", 5)
	return c
}

// invoke has the built worker process its queues, under the runtime API, until stop is called.
func (s *system) invoke(c worker.Config) (stop func()) {
	urls := slices.DeleteFunc([]string{c.Queue.TaskURL, c.Queue.DeadURL, c.Queue.ObjectURL}, func(url string) bool { return url == "" })
	f := lambdakit.New(lambdakit.Program{Name: "worker", Path: filepath.Join(programs, "worker"), Env: environment(c), Output: s.log}, len(urls))
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, url := range urls {
		most := 10
		if url == c.Queue.TaskURL {
			most = 3
		}
		all.Go(func() {
			if err := mapQueue(ctx, f, c.Queue, url, most); err != nil && ctx.Err() == nil {
				s.t.Errorf("worker: %v", err)
			}
		})
	}
	return func() { cancel(); all.Wait(); f.Close() }
}

// mapQueue invokes the function with the messages of a queue, like Lambda's event source mapping, whose BatchSize in
// template.yaml is most. It deletes the messages that the response does not name as failed.
func mapQueue(ctx context.Context, f *lambdakit.Function, c queue.Config, url string, most int) error {
	q := queue.Open(c, url)
	for ctx.Err() == nil {
		messages, err := q.Receive(ctx, most, 20*time.Second, 30*time.Second)
		if err != nil {
			return err
		}
		if len(messages) == 0 {
			continue
		}
		var batch []lambdakit.Message
		for _, m := range messages {
			batch = append(batch, lambdakit.Message{ID: m.ID, Receipt: m.Receipt, Body: m.Body, Received: m.Receives})
		}
		var answer events.SQSEventResponse
		if err := f.Call(context.WithoutCancel(ctx), lambdakit.SQSEvent(queue.Name(url), batch...), &answer); err != nil {
			return err
		}
		for _, failed := range answer.BatchItemFailures {
			messages = slices.DeleteFunc(messages, func(m queue.Message) bool { return m.ID == failed.ItemIdentifier })
		}
		if err := q.Delete(context.WithoutCancel(ctx), messages...); err != nil {
			return err
		}
	}
	return nil
}
