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

// Longer lines are cut into pieces of this many bytes.
const lineLimit = 64 << 10

// tailLines is how many of a child's last lines an error shows: PostgreSQL writes up to seven after the one that says
// why it ends.
const tailLines = 8

// tail remembers the last lines of one run of a child; after a panic, those up to its cause.
type tail struct {
	mu       sync.Mutex
	panicked bool
	trace    bool
	lines    []string
}

// add remembers a line. It returns false for the stack trace after a panic, which is for the log file only.
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

// String joins the lines into one, so that an error stays one line. What a child logged in JSON below WARN is left
// out: it says nothing about the end.
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

// noSpace tells whether the child said that the disk is full. Of a write that was cut short the code of Postgres says
// it. Postgres says the same of too little shared memory, which is another matter.
func (t *tail) noSpace() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.lines, func(line string) bool {
		line = strings.ToLower(line)
		full := strings.Contains(line, "no space left on device") || strings.Contains(line, "sqlstate 53100")
		return full && !strings.Contains(line, "shared memory")
	})
}

// copyLines reads a child's output to its end, line by line. A log that cannot be written does not stop it: the child
// would block on a full pipe.
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
