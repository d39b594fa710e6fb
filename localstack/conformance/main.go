// Command conformance runs the S3, SQS and object event suites against every store and queue that Longbox supports,
// without containers, and prints a table of what each supports.
//
// The services are programs in .tools, which localstack/prepare.sh conformance installs. The suites are ordinary tests.
// A feature that a service lacks is a skipped test, anything else a failure.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
)

// suite is a set of tests.
type suite struct {
	title, pkg string
	run, skip  string // test patterns
}

var (
	stores = &suite{title: "S3", pkg: "./shared/platform/blob", run: "TestConformance"}
	// The skipped tests use no service.
	queues  = &suite{title: "SQS", pkg: "./shared/platform/queue", run: ".", skip: "^Test(Trouble|Config)$"}
	notices = &suite{title: "Object events", pkg: "./shared/domain/ingest", run: "^TestAnnouncements$"}
	books   = &suite{title: "From upload to the list", pkg: "./shared/app/e2e", run: "^TestUploadIsIngest$"}
	setup   = &suite{title: "Script of the containers' buckets and queues", pkg: "./localstack/compose", run: "^TestInit$"}
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var t table
	for _, s := range services {
		if err := s.test(ctx, &t); err != nil {
			fmt.Fprintf(os.Stderr, "conformance: %s: %v\n", s.name, err)
			t.failed = true
		}
	}
	t.document()
	if err := t.print(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		t.failed = true
	}
	if t.failed {
		os.Exit(1)
	}
}

// test starts the service, runs its suites and adds the results to the table.
func (s service) test(ctx context.Context, t *table) error {
	env := append(os.Environ(), "E2E=process")
	if s.start != nil {
		more, stop, err := s.serve(ctx)
		if err != nil {
			return err
		}
		defer stop()
		env = append(env, more...)
	}
	var failures error
	for _, x := range s.suites {
		if err := x.against(ctx, s.name, env, t); err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", x.title, err))
		}
	}
	return failures
}

// measured matches the durations that a test reports.
var measured = regexp.MustCompile(`measured: (.+)`)

// capital matches the start of a word in a test's name.
var capital = regexp.MustCompile(`[A-Z]`)

// against runs the suite with the environment for the service.
func (x *suite) against(ctx context.Context, name string, env []string, t *table) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-tags", "conformance", "-count=1", "-json", "-run", x.run, "-skip", x.skip, x.pkg)
	cmd.Env = env
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, runErr := cmd.Output()
	figures, ended := map[string]string{}, 0
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		if text := strings.TrimSpace(e.Output); e.Action == "output" && strings.Contains(text, "_test.go:") {
			if m := measured.FindStringSubmatch(text); m != nil {
				figures[e.Test] = ", " + m[1]
			} else {
				fmt.Fprintf(os.Stderr, "%s, %s: %.300s\n", name, e.Test, text)
			}
		}
		outcome := map[string]string{"pass": "yes", "skip": "no", "fail": "FAIL"}[e.Action]
		_, test, inner := strings.Cut(e.Test, "/")
		if outcome == "" || !inner && x.run != "." {
			continue
		}
		if !inner { // SendReceiveDelete
			test = strings.TrimSpace(strings.ToLower(capital.ReplaceAllString(strings.TrimPrefix(e.Test, "Test"), " $0")))
		}
		ended++
		t.add(x, strings.ReplaceAll(test, "_", " "), name, outcome+figures[e.Test])
	}
	if ended == 0 {
		return errors.Join(fmt.Errorf("no test ran: %s%.2000s", complaints.String(), out), runErr)
	}
	return lines.Err()
}

// table holds the results of each suite's tests, in the order of their first run.
type table struct {
	rows   []row
	failed bool
}

type row struct {
	suite    *suite
	test     string
	outcomes map[string]string // by service
}

func (t *table) add(x *suite, test, service, outcome string) {
	t.failed = t.failed || strings.HasPrefix(outcome, "FAIL")
	at := slices.IndexFunc(t.rows, func(r row) bool { return r.suite == x && r.test == test })
	if at < 0 {
		at = len(t.rows)
		t.rows = append(t.rows, row{x, test, map[string]string{}})
	}
	t.rows[at].outcomes[service] = outcome
}
