package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// Of two that are started from one clone at the same time, one waits for the other to have built, and says so.
func TestPreparesOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, err := os.ReadFile("prepare.sh")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^versitygw=(.+)$`).FindStringSubmatch(string(script))
	begun, end := filepath.Join(dir, "begun"), filepath.Join(dir, "end")
	for name, text := range map[string]string{
		"localstack/prepare.sh": string(script), ".tools/bin/versitygw": "", ".tools/version/versitygw": version[1],
		"bin/go": "#!/bin/sh\necho begun >" + begun + "\nread go <" + end + "\n", "bin/apt-get": "#!/bin/sh\n", "bin/chmod": "#!/bin/sh\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, pipe := range []string{begun, end} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prepare := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.Command("bash", filepath.Join(dir, "localstack/prepare.sh"), "run")
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, bufio.NewScanner(out)
	}
	built := func() {
		t.Helper()
		if _, err := os.ReadFile(begun); err != nil {
			t.Fatal(err)
		}
	}
	first, lines := prepare()
	built()
	second, waits := prepare()
	const want = "Longbox: another make prepares this clone: waiting for it"
	if waits.Scan(); waits.Text() != want {
		t.Errorf("the second says %q, want %q", waits.Text(), want)
	}
	if err := os.WriteFile(end, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := first.Wait(); err != nil {
		t.Error("the first:", err)
	}
	built()
	if err := os.WriteFile(end, []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	for waits.Scan() {
	}
	if err := second.Wait(); err != nil {
		t.Error("the second:", err)
	}
}
