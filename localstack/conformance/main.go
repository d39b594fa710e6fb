// Command conformance runs the suites of S3, SQS and object events against every store and queue that Longbox is
// meant for, without containers, and prints a table of what each supports.
//
// A store is a program of .tools/bin: localstack/prepare.sh conformance builds them. The suites are ordinary tests
// (shared/platform/blob, shared/platform/queue); what a store lacks is a skipped test, anything else a failure.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const access, secret = "longboxtest", "longboxtestsecret"

// target is a service and how to test it.
type target struct {
	name   string
	suite  string // package
	run    string // pattern of tests
	start  func(dir, port string) *exec.Cmd
	health string
	env    []string // of the suite; %s is the address
}

var targets = []target{
	{name: "versitygw", suite: "./shared/platform/blob", run: "TestConformance"}, // started by the suite itself
	{name: "MinIO", suite: "./shared/platform/blob", run: "TestConformance", health: "/minio/health/live",
		start: func(dir, port string) *exec.Cmd {
			cmd := exec.Command(".tools/bin/minio", "server", "--quiet", "--address", "127.0.0.1:"+port, "--console-address", "127.0.0.1:0", filepath.Join(dir, "data"))
			cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+access, "MINIO_ROOT_PASSWORD="+secret, "MINIO_UPDATE=off", "HOME="+dir)
			return cmd
		},
		env: []string{"TEST_S3_ENDPOINT=%s", "TEST_S3_ACCESS_KEY=" + access, "TEST_S3_SECRET_KEY=" + secret}},
	{name: "SQS of testkit", suite: "./shared/platform/queue", run: "."},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	table := map[string]map[string]string{} // suite → test → "name: outcome"
	var order []string
	failed := false
	for _, t := range targets {
		outcomes, tests, err := t.test(ctx)
		if err != nil {
			fmt.Fprintf(os.Stderr, "conformance: %s: %v\n", t.name, err)
			failed = true
		}
		for _, test := range tests {
			at := t.suite + " " + test
			if table[at] == nil {
				table[at] = map[string]string{}
				order = append(order, at)
			}
			table[at][t.name] = outcomes[test]
			failed = failed || outcomes[test] == "FAIL"
		}
	}
	print(table, order)
	if failed {
		os.Exit(1)
	}
}

// test starts the service, runs the suite and says how each test ended.
func (t target) test(ctx context.Context) (outcomes map[string]string, tests []string, err error) {
	env := os.Environ()
	if t.start != nil {
		address, stop, err := t.serve(ctx)
		if err != nil {
			return nil, nil, err
		}
		defer stop()
		for _, e := range t.env {
			env = append(env, strings.ReplaceAll(e, "%s", address))
		}
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-json", "-run", t.run, t.suite)
	cmd.Env = env
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, runErr := cmd.Output()
	outcomes, untested := map[string]string{}, map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		if e.Action == "output" && strings.Contains(e.Output, "not tested") {
			untested[e.Test] = true
		}
		outcome := map[string]string{"pass": "yes", "skip": "no", "fail": "FAIL"}[e.Action]
		if outcome == "no" && untested[e.Test] {
			outcome = "not tested"
		}
		if outcome != "" && (strings.Contains(e.Test, "/") || t.run == ".") {
			outcomes[e.Test] = outcome
			tests = append(tests, e.Test)
		}
		if text := strings.TrimSpace(e.Output); e.Action == "output" && strings.Contains(text, "_test.go:") {
			fmt.Fprintf(os.Stderr, "%s, %s: %.300s\n", t.name, e.Test, text)
		}
	}
	slices.Sort(tests)
	if len(tests) == 0 {
		return nil, nil, errors.Join(fmt.Errorf("no test ran: %s", complaints.String()), runErr)
	}
	return outcomes, tests, lines.Err()
}

// serve starts the service on a free port and waits until it answers.
func (t target) serve(ctx context.Context) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "longbox-conformance-")
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err = errors.Join(err, l.Close()); err != nil {
		return "", nil, err
	}
	cmd := t.start(dir, port)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("%w: run localstack/prepare.sh conformance", err)
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = os.RemoveAll(dir) } // nothing outlives the run
	address = "http://127.0.0.1:" + port
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		res, err := http.Get(address + t.health)
		if err != nil {
			continue
		}
		_ = res.Body.Close() // only its status matters
		if res.StatusCode == http.StatusOK {
			return address, stop, nil
		}
	}
	stop()
	return "", nil, fmt.Errorf("does not answer: %s", log.String())
}

func print(table map[string]map[string]string, order []string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, suite := range []string{"./shared/platform/blob", "./shared/platform/queue"} {
		var names []string
		for _, t := range targets {
			if t.suite == suite {
				names = append(names, t.name)
			}
		}
		fmt.Fprintf(w, "%s\t%s\n", strings.TrimPrefix(suite, "./shared/platform/"), strings.Join(names, "\t"))
		for _, at := range order {
			test, ok := strings.CutPrefix(at, suite+" ")
			if !ok {
				continue
			}
			fmt.Fprint(w, strings.ReplaceAll(test[strings.Index(test, "/")+1:], "_", " "))
			for _, name := range names {
				outcome := table[at][name]
				if outcome == "" {
					outcome = "not run"
				}
				fmt.Fprint(w, "\t"+outcome)
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
}
