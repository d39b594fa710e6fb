package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// site is a folder for the programs and data of one test. Other users may enter it, because a system started as root
// runs as another user.
type site struct{ dir, programs, data string }

// newSite copies the test binary as every program into a folder with the given mode.
func newSite(t *testing.T, mode os.FileMode) site {
	t.Helper()
	dir, err := os.MkdirTemp("", "longbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := site{dir, filepath.Join(dir, "bin"), filepath.Join(dir, "data")}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.programs, 0o755); err != nil {
		t.Fatal(err)
	}
	copySelf(t, filepath.Join(s.programs, "localstack"))
	for _, name := range []string{"migrate", "api", "media", "worker", "scheduler", "sse-relay", "plugin"} {
		if err := os.Link(filepath.Join(s.programs, "localstack"), filepath.Join(s.programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// copySelf has another process write the copy. If this process wrote it, a program that a parallel test starts at that
// moment would have the file open, and the copy could not be executed.
func copySelf(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", self, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// command is a running localstack.
type command struct {
	cmd   *exec.Cmd
	url   string
	ended chan error

	mu  sync.Mutex
	out strings.Builder
}

// begin starts localstack on a site.
func begin(t *testing.T, s site, env ...string) *command {
	t.Helper()
	tools, err := filepath.Abs("../.tools/bin")
	if err != nil {
		t.Fatal(err)
	}
	// The umask must not decide what the programs' user can enter.
	cmd := exec.Command("/bin/sh", "-c", `umask 077; exec "$0"`, filepath.Join(s.programs, "localstack"))
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PORT=0", "DATA_DIR=" + s.data,
		"LONGBOX_PROGRAMS=" + s.programs, "LONGBOX_TOOLS=" + tools, "AWS_SESSION_TOKEN=of-a-real-cloud", "PGHOST=elsewhere",
		"PGSERVICE=work", "PGOPTIONS=-c default_transaction_read_only=on", "PGTARGETSESSIONATTRS=standby",
		"DATABASE_ADMIN_URL=postgres://somebody@elsewhere/postgres", "SMTP_PASSWORD=of-mail", "PLUGIN_FUNCTION=of-a-real-cloud",
		"PLUGIN_TOKEN=guessed", "CREDENTIALS_KEY=elsewhere's", "ORIGIN_SECRET=of-a-real-cloud", "DELIVERY=redirect",
		"GORACE=" + os.Getenv("GORACE")}, env...)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	c := &command{cmd: cmd, ended: make(chan error, 1)}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			c.mu.Lock()
			c.out.WriteString(lines.Text() + "\n")
			c.mu.Unlock()
			if url, ok := strings.CutPrefix(lines.Text(), "Longbox is ready: "); ok {
				ready <- url
			}
		}
		out.Close()
		c.ended <- cmd.Wait()
	}()
	select {
	case c.url = <-ready:
	case <-time.After(2 * time.Minute):
		t.Fatalf("neither ready nor ended after two minutes: %s", c.output())
	}
	return c
}

// start runs localstack and fails the test unless it becomes ready.
func start(t *testing.T, s site, env ...string) *command {
	t.Helper()
	c := begin(t, s, env...)
	if c.url == "" {
		t.Fatalf("localstack ended: %v: %s", <-c.ended, c.output())
	}
	return c
}

func (c *command) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// stop ends localstack as Ctrl-C does and returns what it printed.
func (c *command) stop(t *testing.T) string {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := <-c.ended; err != nil {
		t.Errorf("localstack ended with %v: %s", err, c.output())
	}
	return c.output()
}

func (c *command) get(t *testing.T, path string) told {
	t.Helper()
	got, err := c.ask(path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (c *command) ask(path string) (got told, err error) {
	res, err := http.Get(c.url + path)
	if err != nil {
		return got, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return got, fmt.Errorf("%s answers %s", path, res.Status)
	}
	return got, json.NewDecoder(res.Body).Decode(&got)
}

// children reads the list of processes that localstack keeps.
func children(t *testing.T, s site) map[string]struct {
	PID int `json:"pid"`
} {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.data, "processes.json"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]struct {
		PID int `json:"pid"`
	}{}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	return got
}
