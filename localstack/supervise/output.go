package supervise

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/longbox/longbox/shared/cut"
)

// lineLimit is the maximum line length in bytes. Longer lines are split.
const lineLimit = 64 << 10

// tailLines is the number of a child's last lines in an error. PostgreSQL writes up to seven after the one with the
// reason of its end.
const tailLines = 8

// tail holds the last lines of one run of a child or, after a panic, the lines up to its cause.
type tail struct {
	mu       sync.Mutex
	panicked bool
	trace    bool
	lines    []string
}

// add adds a line. It returns false for the stack trace after a panic, which only goes to the log file.
func (t *tail) add(line string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.panicked = t.panicked || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	t.trace = t.trace || t.panicked && strings.HasPrefix(line, "goroutine ")
	if line = strings.TrimSpace(line); line == "" || t.trace {
		return !t.trace
	}
	if t.lines = append(t.lines, line); len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
	return true
}

// String joins the lines, so that an error stays one line. It leaves out JSON log lines below WARN, which do not
// explain the end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var short []string
	for _, line := range t.lines {
		if text, show := readable([]byte(line)); show {
			short = append(short, cut.Bytes(text, 300))
		}
	}
	return strings.Join(short, " | ")
}

// noSpace reports whether the child said that the disk is full. For an interrupted write, Postgres only reports the
// error code. It uses the same text for too little shared memory, which is a different problem.
func (t *tail) noSpace() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(line string) bool {
		line = strings.ToLower(line)
		full := strings.Contains(line, "no space left on device") || strings.Contains(line, "sqlstate 53100")
		return full && !strings.Contains(line, "shared memory")
	})
}

// copyLines reads a child's output line by line to its end. It continues when the log cannot be written: otherwise the
// child would block on a full pipe.
func copyLines(r io.Reader, each func(line []byte)) {
	br := bufio.NewReaderSize(r, lineLimit)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) > 0 {
			each(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
