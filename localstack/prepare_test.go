package main

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// If two start from the same clone at the same time, one waits until the other has built, and says so.
func TestPreparesOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun, end := filepath.Join(dir, "begun"), filepath.Join(dir, "end")
	newClone(t, dir, map[string]string{"bin/go": "#!/bin/sh\n[ \"$1\" = build ] || exit 0\necho begun >" + begun + "\nread go <" + end + "\n"})
	for _, pipe := range []string{begun, end} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	prepare := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := prepareRun(dir)
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
	const want = "Longbox: another make is preparing this clone: waiting for it"
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

// Git refuses to read another user's clone for root. Go then builds only if it is told not to record the commit.
func TestBuildsWhereGitRefuses(t *testing.T) {
	t.Parallel()
	for git, stamped := range map[string]bool{"exit 0": true, "echo dubious ownership >&2; exit 128": false} {
		dir := t.TempDir()
		args := filepath.Join(dir, "args")
		newClone(t, dir, map[string]string{"bin/git": "#!/bin/sh\n" + git + "\n", "bin/go": "#!/bin/sh\necho \"$@\" >" + args + "\n"})
		if out, err := prepareRun(dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		got, err := os.ReadFile(args)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(got), "-buildvcs=false") == stamped {
			t.Errorf("git: %s: go %s", git, got)
		}
	}
}

// For a clone that belongs to another user, there is an error of one line.
func TestCloneOfAnotherUser(t *testing.T) {
	t.Parallel()
	for name, locked := range map[string]string{"no .tools": ".tools", "the lock": ".tools/lock/of-another"} {
		dir := t.TempDir()
		newClone(t, dir, nil)
		// A file takes the place of the folder, because nothing else is refused to root.
		if locked == ".tools" {
			if err := os.RemoveAll(filepath.Join(dir, locked)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, locked), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if err := os.MkdirAll(filepath.Join(dir, locked), 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := prepareRun(dir).CombinedOutput()
		if said := string(out); err == nil || strings.Count(said, "\n") != 1 || !strings.Contains(said, "may not write to "+filepath.Join(dir, ".tools")+": start as the user who owns the clone") {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
}

// A disk that is nearly full is named before anything is built: without that it shows as failures of many kinds.
func TestSaysThatTheDiskIsNearlyFull(t *testing.T) {
	t.Parallel()
	for free, warned := range map[string]bool{"1048575": true, "1048576": false, "": false} {
		dir := t.TempDir()
		newClone(t, dir, map[string]string{"bin/go": "#!/bin/sh\n", "bin/df": "#!/bin/sh\necho Filesystem 1024-blocks Used Available\necho disk 9 9 " + free + "\n"})
		out, err := prepareRun(dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.Contains(string(out), "Longbox: less than 1 GB is free on the disk of "); got != warned {
			t.Errorf("%s KB free: %s", free, out)
		}
	}
}

// So is a disk that has room for only a few more files.
func TestSaysThatTheDiskHasFewInodes(t *testing.T) {
	t.Parallel()
	for free, warned := range map[string]bool{"9 99999": true, "9 100000": false, "0 0": false, "- -": false} {
		dir := t.TempDir()
		total, left, _ := strings.Cut(free, " ")
		newClone(t, dir, map[string]string{"bin/go": "#!/bin/sh\n", "bin/df": "#!/bin/sh\necho Filesystem\ncase $1 in -Pi) echo disk " + total + " 9 " + left +
			";; *) echo disk 9 9 9999999;; esac\n"})
		out, err := prepareRun(dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := strings.Contains(string(out), "has room for only 99999 more files"); got != warned {
			t.Errorf("%s inodes free: %s", free, out)
		}
	}
}

// apt-get autoremove must not remove the server that opens the database: after an upgrade of the system, the package
// postgresql depends on another one. Root marks the server as installed by hand. Others are told to have root run the
// same, because apt-get alone would also start the system's own servers.
func TestKeepsTheServerOfTheDatabase(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("prepare.sh")
	if err != nil {
		t.Fatal(err)
	}
	for user, done := range map[string]bool{"0": true, "1000": false} {
		dir := t.TempDir()
		servers, marked := filepath.Join(dir, "postgresql"), filepath.Join(dir, "marked")
		script := strings.NewReplacer("EUID", user, "/usr/lib/postgresql", servers, "/usr/sbin/", dir+"/",
			"/etc/postgresql-common", dir+"/common").Replace(string(raw))
		newClone(t, dir, map[string]string{"localstack/prepare.sh": script, "bin/go": "#!/bin/sh\n", "bin/update-rc.d": "#!/bin/sh\n",
			"bin/apt-mark": "#!/bin/sh\necho \"$@\" >" + marked + "\n",
			"bin/dpkg":     "#!/bin/sh\n[ \"$*\" = '-S " + servers + "/*/bin/initdb' ] && echo postgresql-15: " + servers + "/15/bin/initdb\n"})
		out, err := prepareRun(dir).CombinedOutput()
		if (err == nil) != done {
			t.Errorf("as user %s: %v: %s", user, err, out)
		}
		if told := "Longbox: these packages are missing; as root, run: make -C " + dir + " packages\n"; !done && string(out) != told {
			t.Errorf("told %q, want %q", out, told)
		}
		if got, err := os.ReadFile(marked); done && string(got) != "manual postgresql-15\n" {
			t.Errorf("apt-mark %s (%v), want manual postgresql-15", got, err)
		}
	}
}

// A Go that is too old is named before anything is installed. Go 1.21 and later may fetch a newer one.
func TestOldGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ version, toolchain, refused string }{
		{"go1.19.8", "", "1.19.8"}, {"go1.22", "local", "1.22"}, {"go1.26rc1", "local", "1.26"}, {"go1.22.2", "auto", ""}, {"go1.26.0", "local", ""},
		{"go1.100.1", "local", ""}, {"devel go1.27-0123abc", "local", ""},
	} {
		dir := t.TempDir()
		newClone(t, dir, map[string]string{"bin/go": "#!/bin/sh\ncase $1 in\nversion) echo go version " + c.version + " linux/amd64 ;;\nenv) echo " + c.toolchain + " ;;\nesac\n"})
		out, err := prepareRun(dir).CombinedOutput()
		want := "Longbox: Go " + c.refused + " is too old: install Go 1.26.0 or newer from https://go.dev/dl and put its bin folder first on the PATH\n"
		if refused := err != nil && string(out) == want; refused != (c.refused != "") || !refused && err != nil {
			t.Errorf("%+v: %v: %s", c, err, out)
		}
	}
}

// What Go was fetching when it failed is not why.
func TestNamesTheProblemOfAnInstallation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newClone(t, dir, map[string]string{".tools/version/versitygw": "old",
		"bin/go": "#!/bin/sh\n[ $1 = install ] || exit 0\necho go: example.org/a: no such host\necho go: downloading example.org/b v1.0.0\nexit 1\n"})
	out, err := prepareRun(dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), " cannot be installed (go: example.org/a: no such host): ") {
		t.Errorf("%v: %s", err, out)
	}
}

// A password on make's command line reaches Longbox as it was given, with every $.
func TestRunPassesOnWhatMakeWasGiven(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	newClone(t, dir, map[string]string{"Makefile": string(makefile), "bin/go": "#!/bin/sh\n",
		".bin/localstack": "#!/bin/sh\necho \"$LONGBOX_ADMIN $LIBRARY $WEB_DIR\"\n"})
	cmd := exec.Command("make", "--no-print-directory", "-C", dir, "run", "LONGBOX_ADMIN=a:P$w$$x#(y)", "LIBRARY=/srv/A$B")
	cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "WEB_DIR=/srv/$W"}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "a:P$w$$x#(y) /srv/A$B /srv/$W\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// newClone creates the parts of a clone that prepare.sh needs, with these additional files. Programs in bin come first
// on its PATH.
func newClone(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	script, err := os.ReadFile("prepare.sh")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^versitygw=(.+)$`).FindStringSubmatch(string(script))
	all := map[string]string{"localstack/prepare.sh": string(script), ".tools/bin/versitygw": "", ".tools/version/versitygw": version[1],
		"go.mod": "module x\n\ngo 1.26.0\n", "bin/apt-get": "#!/bin/sh\n", "bin/chmod": "#!/bin/sh\n"}
	maps.Copy(all, files)
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// prepareRun returns the command prepare.sh run for a clone made by newClone.
func prepareRun(dir string) *exec.Cmd {
	cmd := exec.Command("bash", filepath.Join(dir, "localstack/prepare.sh"), "run")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	return cmd
}
