package supervise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Console prints for the user who started the system: one line per step, and the warnings of the children. Nothing
// waits until a line is written, because a terminal can be stopped (Ctrl-S).
type Console struct {
	w       io.Writer
	mu      sync.Mutex
	queue   []string
	idle    chan struct{} // Closed once the queue is written; nil while nothing writes.
	second  time.Time
	written int
	dropped int
}

// Limits on what children print: per second, and while lines wait for the console. Their log files have everything.
const (
	linesPerSecond = 20
	linesWaiting   = 100
)

// flushWait is how long Flush waits for the console.
const flushWait = 2 * time.Second

// NewConsole writes to w.
func NewConsole(w io.Writer) *Console { return &Console{w: w} }

// Say prints a line of the supervisor.
func (c *Console) Say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(format+"\n", args...)
}

// Flush waits until everything is written. It gives up on a console that does not go on.
func (c *Console) Flush() {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(flushWait):
	}
}

// put queues a line. The caller holds the mutex.
func (c *Console) put(format string, args ...any) {
	c.queue = append(c.queue, fmt.Sprintf(format, args...))
	if c.idle == nil {
		c.idle = make(chan struct{})
		go c.write()
	}
}

// write writes the queue until it is empty.
func (c *Console) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		lines := strings.Join(c.queue, "")
		c.queue = nil
		c.mu.Unlock()
		_, _ = io.WriteString(c.w, lines)
		c.mu.Lock()
	}
	close(c.idle)
	c.idle = nil
}

// child prints a child's log line if it needs attention: slog JSON of level WARN and above in readable form, and
// anything that is not JSON (a panic). Requests that fail for a known cause, such as a database that is away, stay
// in the log file: they would displace everything else.
func (c *Console) child(name string, line []byte) {
	text, show := readable(line)
	if !show {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if second := now.Truncate(time.Second); second != c.second {
		c.second, c.written = second, 0
	}
	if c.written++; c.written > linesPerSecond || len(c.queue) >= linesWaiting {
		c.dropped++
		return
	}
	if c.dropped > 0 {
		c.put("(%d more lines are only in the log files)\n", c.dropped)
		c.dropped = 0
	}
	c.put("%s %s %s\n", now.Format(time.TimeOnly), name, text)
}

// readable formats a log line for people and reports whether to show it.
func readable(line []byte) (text string, show bool) {
	var entry map[string]any
	numbers := json.NewDecoder(bytes.NewReader(line))
	numbers.UseNumber() // as written: no 1e+06
	err := numbers.Decode(&entry)
	if _, more := numbers.Token(); err != nil || more != io.EOF {
		text = strings.TrimRight(string(line), "\r\n")
		return printable(text), strings.TrimSpace(text) != ""
	}
	var level slog.Level
	name, _ := entry[slog.LevelKey].(string)
	if err := level.UnmarshalText([]byte(name)); err != nil || level < slog.LevelWarn ||
		level < slog.LevelError && entry[slog.MessageKey] == "request" && entry["cause"] != nil {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v", name, entry[slog.MessageKey])
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		switch key {
		case slog.TimeKey, slog.LevelKey, slog.MessageKey, slog.SourceKey:
		default:
			fmt.Fprintf(&b, " %s=%v", key, entry[key])
		}
	}
	return printable(b.String()), true
}

// printable returns text in one line with control characters escaped: some of it comes from clients and from files.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
