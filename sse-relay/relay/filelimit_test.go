package relay

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A limit of open files far below the connection limit causes a warning.
func TestFewFilesAreAWarning(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // New asks it nothing
	defer rdb.Close()
	for times, want := range map[int]string{11: "level=WARN", 2: "level=INFO"} {
		var out bytes.Buffer
		if _, err := New(Config{MaxConnections: times * fileLimit()}, rdb, slog.New(slog.NewTextHandler(&out, nil))); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, "fewer connections than MAX_CONNECTIONS") {
			t.Errorf("%d times the limit: %q, want %s", times, got, want)
		}
	}
}
