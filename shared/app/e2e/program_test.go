package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/app/operator"
	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/platform/seal"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
)

// onlyBuilt skips a test of what only the built functions have.
func onlyBuilt(t *testing.T) {
	t.Helper()
	if programs == "" {
		t.Skip("a test of the built functions")
	}
}

// program returns a call of a built function with these settings.
func (s *system) program(t *testing.T, name string, env []string) (call func(in, out any) error) {
	t.Helper()
	f := lambdakit.New(lambdakit.Program{Name: name, Path: filepath.Join(programs, name), Env: env, Output: s.log}, 1)
	t.Cleanup(f.Close)
	return func(in, out any) error { return f.Call(t.Context(), in, out) }
}

// An operator suspends and resumes a tenant by invoking the function.
func TestOperatorFunction(t *testing.T) {
	onlyBuilt(t)
	t.Parallel()
	s := newSystem(t, links{})
	call := s.program(t, "operator", environment(operator.Config{SystemURL: s.system, Blob: s.s3.Config, RedisURL: s.config.RedisURL,
		Seal: seal.Config{Key: s.seal.Key}}))
	order := func(command string, input map[string]any, out any) {
		t.Helper()
		if err := call(map[string]any{"command": command, "input": input}, out); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	reader := s.as("reader")
	for _, c := range []struct {
		command, status string
		answer          int
	}{{"suspend", "suspended", 403}, {"resume", "active", 200}} {
		order(c.command, map[string]any{"name": "one"}, nil)
		var all struct {
			Tenants []struct{ Name, Status string }
		}
		order("list", map[string]any{}, &all)
		found := map[string]string{}
		for _, tenant := range all.Tenants {
			found[tenant.Name] = tenant.Status
		}
		if found["one"] != c.status || found["two"] != "active" {
			t.Errorf("after %s: %v", c.command, found)
		}
		testkit.Eventually(t, 10*time.Second, func() bool { return reader.Do("GET", "/api/v1/auth/me", nil).Status == c.answer })
	}
	if err := call(map[string]any{"command": "suspend", "input": map[string]any{"name": "nobody"}}, nil); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a tenant that does not exist: %v", err)
	}
}

// CloudFormation waits for the answer that migrate sends to the address in its event.
func TestMigrateFunction(t *testing.T) {
	onlyBuilt(t)
	t.Parallel()
	s := newSystem(t, links{})
	call := s.program(t, "migrate", []string{"DATABASE_OWNER_URL=" + s.DB.OwnerURL})
	var plain struct {
		Version int64
		Applied int
		Missing []int64
	}
	if err := call(map[string]any{"dry_run": true}, &plain); err != nil || plain.Version < 1 || len(plain.Missing) != 0 {
		t.Fatalf("%+v, %v", plain, err)
	}
	answers := make(chan string, 1)
	stack := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answers <- string(body)
	}))
	defer stack.Close()
	if err := call(map[string]any{"RequestType": "Update", "ResponseURL": stack.URL, "RequestId": "r", "StackId": "s", "LogicalResourceId": "Schema",
		"PhysicalResourceId": "schema", "ResourceProperties": map[string]any{"Version": "1"}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-answers; !strings.Contains(got, `"Status":"SUCCESS"`) || !strings.Contains(got, `"SchemaVersion"`) {
		t.Error(got)
	}
}

// A deployment tells the scheduler that the server has started. Its scan on start runs through the queue. The next
// round comes by a schedule.
func TestSchedulerFunction(t *testing.T) {
	onlyBuilt(t)
	t.Parallel()
	s := newSystem(t, links{})
	call := s.program(t, "scheduler", environment(scheduler.Config{Config: s.config.Config, SystemURL: s.system}))
	admin := s.as("admin")
	s.library(admin, "Books", "")
	s.exec("update library set scan_on_start = true where tenant_id = $1", s.One)
	testkit.WriteFile(t, s.folder, "a/1.cbz", testkit.Comic(t, 1, 3, ""))
	defer s.work()()
	var did struct {
		Started int
		Round   time.Time
	}
	if err := call(map[string]any{"start": true}, &did); err != nil || did.Started != 1 {
		t.Fatalf("%+v, %v", did, err)
	}
	first := did.Round
	if err := call(lambdakit.ScheduleEvent("every-minute", time.Now()), &did); err != nil || !did.Round.After(first) {
		t.Fatalf("%+v, %v", did, err)
	}
	testkit.Eventually(t, time.Minute, func() bool { return s.books(admin)["a/1.cbz"].PageCount == 3 })
}

// A bucket may also invoke the worker without a queue.
func TestWorkerTakesEventsOfTheBucket(t *testing.T) {
	onlyBuilt(t)
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	s.library(admin, "Books", "")
	const key = "Reihe #1/日本 (a+b) 100%.cbz"
	testkit.WriteFile(t, s.folder, key, testkit.Comic(t, 1, 3, ""))
	call := s.program(t, "worker", environment(s.workerConfig()))
	if err := call(lambdakit.S3Event("ObjectCreated:Put", "books", key, 1), nil); err != nil {
		t.Fatal(err)
	}
	defer s.work()() // the book is read by a task
	testkit.Eventually(t, time.Minute, func() bool { return s.books(admin)[key].PageCount == 3 })
	if err := os.Remove(filepath.Join(s.folder, key)); err != nil {
		t.Fatal(err)
	}
	if err := call(lambdakit.S3Event("ObjectRemoved:Delete", "books", key, 0), nil); err != nil {
		t.Fatal(err)
	}
	if _, there := s.books(admin)[key]; there {
		t.Error("a removed object is still a book")
	}
}
