package host

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/longbox/longbox/shared/cut"
)

// Limits of a process's log: bytes per line, and lines per minute.
const (
	maxLogLine  = 2000
	maxLogLines = 300
)

// stderr receives the process's standard error. It copies its lines to our log, up to the limits, and keeps the last
// one.
type stderr struct {
	log *slog.Logger

	mu    sync.Mutex
	part  []byte
	line  string
	since time.Time // start of the minute in which lines are counted
	lines int
}

// Write splits the data into lines and truncates long ones.
func (l *stderr) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := data; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := maxLogLine - len(l.part); room > 0 {
			l.part = append(l.part, line[:min(room, len(line))]...)
		}
		if whole {
			l.tell()
		}
		rest = after
	}
	return len(data), nil
}

// tell logs the line in part, and empties it.
func (l *stderr) tell() {
	text := strings.TrimSpace(strings.ToValidUTF8(string(l.part), "�"))
	l.part = l.part[:0]
	if text == "" {
		return
	}
	l.line = text
	if now := time.Now(); now.Sub(l.since) > time.Minute {
		l.since, l.lines = now, 0
	}
	switch l.lines++; {
	case l.lines <= maxLogLines:
		l.log.Info("output of a plugin", "line", text)
	case l.lines == maxLogLines+1:
		l.log.Warn("plugin writes too many lines: the rest of this minute is left out")
	}
}

// flush logs an incomplete last line.
func (l *stderr) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell()
}

func (l *stderr) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cut.Brief(l.line, 600)
}
