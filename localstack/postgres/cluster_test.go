package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestPrograms(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		installed []string
		cluster   string // Content of PG_VERSION; empty: there is none.
		want      string // Folder below the root, or
		err       string
	}{
		"newest for a new cluster": {installed: []string{"15", "17", "9.6", "16"}, want: "17/bin"},
		"the cluster's own":        {installed: []string{"15", "17"}, cluster: "15\n", want: "15/bin"},
		"the cluster's is gone":    {installed: []string{"17"}, cluster: "15\n", err: "apt-get install postgresql-15 (apt.postgresql.org has it"},
		"too old":                  {installed: []string{"13", "14"}, err: "PostgreSQL 14 is too old: Longbox needs 15"},
		"none":                     {err: "apt-get install postgresql"},
		"damaged cluster":          {installed: []string{"17"}, cluster: "x", err: "PG_VERSION"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, cluster := t.TempDir(), t.TempDir()
			for _, version := range c.installed {
				bin := filepath.Join(root, version, "bin")
				if err := os.MkdirAll(bin, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(bin, "initdb"), nil, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.cluster != "" {
				if err := os.WriteFile(filepath.Join(cluster, "PG_VERSION"), []byte(c.cluster), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := programs(filepath.Join(root, "*", "bin"), cluster)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want an error with %q", err, c.err)
				}
				return
			}
			if err != nil || got != filepath.Join(root, c.want) {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// postgresIn returns the process id of a program called postgres that works in dir.
func postgresIn(t *testing.T, dir string) int {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "postgres")
	if err := os.Symlink(sleep, path); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "3600")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd.Process.Pid
}

func TestClearStale(t *testing.T) {
	t.Parallel()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	ours := t.TempDir()
	cases := map[string]struct {
		dir     string
		pid     int
		removed bool
	}{
		"another program has the number now": {t.TempDir(), os.Getpid(), true},
		"no such process":                    {t.TempDir(), ended.Process.Pid, false}, // PostgreSQL sees that by itself.
		"a server of these data":             {ours, postgresIn(t, ours), false},
		"a server of other data":             {t.TempDir(), postgresIn(t, t.TempDir()), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &Cluster{dir: c.dir}
			path := filepath.Join(cluster.dir, "postmaster.pid")
			if err := os.WriteFile(path, []byte(strconv.Itoa(c.pid)+"\n/data\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := cluster.ClearStale(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); os.IsNotExist(err) != c.removed {
				t.Errorf("removed: %v, want %v", os.IsNotExist(err), c.removed)
			}
		})
	}
	if err := (&Cluster{dir: t.TempDir()}).ClearStale(); err != nil {
		t.Errorf("without a lock file: %v", err)
	}
}

// Processes that initdb started may write for a moment after initdb was killed.
func TestRemovesWhatIsStillWritten(t *testing.T) {
	t.Parallel()
	for first, want := range map[syscall.Errno]int{syscall.ENOTEMPTY: 3, syscall.EACCES: 1} {
		calls := 0
		err := removeLeft(t.Context(), "postgres.new", func(dir string) error {
			if calls++; calls == 3 {
				return nil
			}
			return &os.PathError{Op: "unlinkat", Path: dir, Err: first}
		})
		if calls != want || (err == nil) != (want == 3) {
			t.Errorf("%v: %d attempts, want %d; %v", first, calls, want, err)
		}
	}
}
