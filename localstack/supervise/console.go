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

// Console prints for the user who started the system: one line per step, and the warnings of the children.
type Console struct {
	mu      sync.Mutex
	w       io.Writer
	second  time.Time
	written int
	dropped int
}

// linesPerSecond limits what children print. Their log files have everything.
const linesPerSecond = 20

// NewConsole writes to w.
func NewConsole(w io.Writer) *Console { return &Console{w: w} }

// Say prints a line of the supervisor.
func (c *Console) Say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.w, format+"\n", args...)
}

// child prints a child's log line if it needs attention: slog JSON of level WARN and above in readable form, and
// anything that is not JSON (a panic).
func (c *Console) child(name string, line []byte) {
	text, show := readable(line)
	if !show {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if second := now.Truncate(time.Second); second != c.second {
		if c.dropped > 0 {
			fmt.Fprintf(c.w, "(%d more lines are only in the log files)\n", c.dropped)
		}
		c.second, c.written, c.dropped = second, 0, 0
	}
	if c.written++; c.written > linesPerSecond {
		c.dropped++
		return
	}
	fmt.Fprintf(c.w, "%s %s %s\n", now.Format(time.TimeOnly), name, text)
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
	if err := level.UnmarshalText([]byte(name)); err != nil || level < slog.LevelWarn {
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
