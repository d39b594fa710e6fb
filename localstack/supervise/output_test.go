package supervise

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReadable(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		line, want string
		show       bool
	}{
		"info":      {`{"time":"t","level":"INFO","msg":"request"}`, "", false},
		"warning":   {`{"time":"t","level":"WARN","msg":"slow","ms":12,"a":"b"}`, "WARN slow a=b ms=12", true},
		"refused":   {`{"level":"WARN","msg":"request","status":503,"cause":"the database is away"}`, "", false},
		"cut off":   {`{"level":"WARN","msg":"request","status":200}`, "WARN request status=200", true},
		"failed":    {`{"level":"ERROR","msg":"request","status":500}`, "ERROR request status=500", true},
		"numbers":   {`{"level":"WARN","msg":"m","bytes":12345678,"id":9007199254740993,"ms":0.5}`, "WARN m bytes=12345678 id=9007199254740993 ms=0.5", true},
		"two":       {`{"level":"INFO"}{"level":"INFO"}`, `{"level":"INFO"}{"level":"INFO"}`, true},
		"error":     {`{"level":"ERROR","msg":"broken"}` + "\n", "ERROR broken", true},
		"above":     {`{"level":"ERROR+4","msg":"broken"}`, "ERROR+4 broken", true},
		"panic":     {"panic: oh no\n", "panic: oh no", true},
		"blank":     {" \n", "", false},
		"no level":  {`{"_aws":{}}`, "", false},
		"forged":    {`{"level":"WARN","msg":"slow\n12:00:00 api","path":"/\u001b[2J\r\u202e\u0085é 本"}`, `WARN slow\n12:00:00 api path=/\x1b[2J\r\u202e\u0085é 本`, true},
		"not JSON":  {"a\x1b[31m\rb\tc\xff\n", `a\x1b[31m\rb\tc�`, true},
		"not a map": {`[1]`, "[1]", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, show := readable([]byte(c.line))
			if show != c.show || show && got != c.want {
				t.Errorf("got %q %v, want %q %v", got, show, c.want, c.show)
			}
		})
	}
}

func TestConsoleIsBounded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := NewConsole(&out)
	for range 10_000 {
		c.child("api", []byte("panic: again"))
	}
	c.Flush()
	// Printing ten thousand lines takes less time than would allow 1,000 to be printed.
	if n := strings.Count(out.String(), "\n"); n < linesPerSecond || n > 1000 {
		t.Errorf("%d lines printed", n)
	}
}

// A console that takes nothing, such as a terminal stopped with Ctrl-S, holds up neither a child nor the supervisor.
// What was for it comes when it goes on.
func TestBlockedConsoleStopsNothing(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	c := NewConsole(w)
	s, err := New(t.Context(), t.TempDir(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ended := make(chan error, 1)
	go func() {
		err := s.RunOnce(t.Context(), child("loud", "loud", ""))
		c.Say("stopped")
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the child still waits for the console")
	}
	go func() {
		c.Flush()
		w.Close()
	}()
	got, err := io.ReadAll(r)
	if said := string(got); err != nil || !strings.Contains(said, "loud WARN look\n") || !strings.HasSuffix(said, "stopped\n") {
		t.Errorf("%q, %v", said, err)
	}
}

func TestCopyLinesCutsLongOnes(t *testing.T) {
	t.Parallel()
	var got []int
	copyLines(strings.NewReader(strings.Repeat("x", 2*lineLimit+1)+"\nshort\nno end"), func(line []byte) { got = append(got, len(line)) })
	want := []int{lineLimit, lineLimit, 2, 6, 6}
	if len(got) != len(want) {
		t.Fatalf("pieces of %v bytes, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("pieces of %v bytes, want %v", got, want)
		}
	}
}

func TestLogIsPutAsideAtItsLimit(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "api.log")
	if err := os.WriteFile(path, make([]byte, logLimit+1), 0o640); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	chunk := append(bytes.Repeat([]byte("y"), 1<<20-1), '\n')
	for range 25 {
		if _, err := l.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{path: 5 << 20, path + ".1": logLimit} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != want {
			t.Errorf("%s holds %d bytes, want %d", name, info.Size(), want)
		}
	}
}

func TestLogGoesOnAfterItCouldNotBePutAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "api.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write(make([]byte, logLimit)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".1", 0o750); err != nil { // no file can take its place
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Write([]byte("lost\n")); err == nil {
			t.Fatal("written beyond the limit")
		}
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close while it is not open: %v", err)
	}
	if err := os.Remove(path + ".1"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write([]byte("again\n")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "again\n" {
		t.Errorf("%.20q, %v", got, err)
	}
}

func TestTailOfAPanicNamesItsCause(t *testing.T) {
	t.Parallel()
	var got tail
	shown := 0
	for _, line := range []string{"starting\n", "panic: duplicate name\n", "\n", "goroutine 1 [running]:\n", "main.main()\n", "\t/main.go:11 +0x26\n"} {
		if got.add(line) {
			shown++
		}
	}
	if want := "starting | panic: duplicate name"; got.String() != want || shown != 3 {
		t.Errorf("got %q with %d lines shown, want %q with 3", got.String(), shown, want)
	}
}

func TestTailLeavesOutQuietLines(t *testing.T) {
	t.Parallel()
	var got tail
	for _, line := range []string{`{"level":"INFO","msg":"listening"}`, `{"level":"ERROR","msg":"ended","error":"no key"}`, "bye"} {
		got.add(line)
	}
	if want := "ERROR ended error=no key | bye"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

// PostgreSQL reports the cause first and its end later. In between it logs that it refuses the clients that check
// whether it is ready.
func TestTailReachesBackToTheReason(t *testing.T) {
	t.Parallel()
	var got tail
	for _, line := range []string{
		"LOG:  database system was shut down",
		`FATAL:  could not write to file "pg_wal/xlogtemp.1": No space left on device`,
		"super@postgres FATAL:  the database system is starting up",
		"LOG:  startup process (PID 1) exited with exit code 1",
		"LOG:  terminating any other active server processes",
		"super@postgres FATAL:  the database system is starting up",
		"LOG:  shutting down due to startup process failure",
		"LOG:  database system is shut down",
	} {
		got.add(line)
	}
	if !strings.Contains(got.String(), "No space left on device") {
		t.Errorf("the reason is missing: %s", got.String())
	}
}

func TestTailCutsWholeCharacters(t *testing.T) {
	t.Parallel()
	var got tail
	got.add("x" + strings.Repeat("漫", 200))
	if want := "x" + strings.Repeat("漫", 99); got.String() != want {
		t.Errorf("got %q", got.String())
	}
}
