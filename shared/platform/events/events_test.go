package events

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// shape decodes an event's data and replaces its timestamp, which must be recent.
func shape(t *testing.T, e Event) map[string]any {
	t.Helper()
	value, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	message, err := decodeEntry("1-2", value)
	if err != nil {
		t.Fatal(err)
	}
	if message.Kind != e.Kind || message.Permission != e.Permission || message.ID != (ID{1, 2}) {
		t.Fatalf("decoded %+v from %+v", message, e)
	}
	got := map[string]any{}
	if err := json.Unmarshal([]byte(message.Data), &got); err != nil {
		t.Fatal(err)
	}
	if text, ok := got["timestamp"].(string); ok {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("timestamp %q: %v", text, err)
		}
		got["timestamp"] = "now"
	}
	return got
}

func TestShapes(t *testing.T) {
	t.Parallel()
	book, series, library, task := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	started := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	b := map[string]any{"book_id": book.String(), "series_id": series.String(), "library_id": library.String(), "timestamp": "now"}
	s := map[string]any{"series_id": series.String(), "library_id": library.String(), "timestamp": "now"}
	l := map[string]any{"library_id": library.String(), "timestamp": "now"}
	with := func(base map[string]any, pairs ...any) map[string]any {
		out := map[string]any{}
		for k, v := range base {
			out[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	for _, test := range []struct {
		event      Event
		permission string
		want       map[string]any
	}{
		{BookCreated(Book{book, series, library}), "BooksRead", with(b, "type", "book_created")},
		{BookUpdated(Book{book, series, library}, "deleted"), "BooksRead", with(b, "type", "book_updated", "fields", []any{"deleted"})},
		{BookUpdated(Book{book, series, library}), "BooksRead", with(b, "type", "book_updated", "fields", nil)},
		{BookDeleted(Book{book, series, library}), "BooksRead", with(b, "type", "book_deleted")},
		{SeriesCreated(Series{series, library}), "SeriesRead", with(s, "type", "series_created")},
		{SeriesUpdated(Series{series, library}, "title"), "SeriesRead", with(s, "type", "series_updated", "fields", []any{"title"})},
		{SeriesDeleted(Series{series, library}), "SeriesRead", with(s, "type", "series_deleted")},
		{LibraryCreated(library), "LibrariesRead", with(l, "type", "library_created")},
		{LibraryUpdated(library), "LibrariesRead", with(l, "type", "library_updated")},
		{LibraryDeleted(library), "LibrariesRead", with(l, "type", "library_deleted")},
		{CoverUpdated(BookEntity, book, &library), "BooksRead",
			with(l, "type", "cover_updated", "entity_type", "book", "entity_id", book.String())},
		{CoverUpdated(SeriesEntity, series, nil), "SeriesRead",
			with(l, "type", "cover_updated", "entity_type", "series", "entity_id", series.String(), "library_id", nil)},
		{TaskProgressed(TaskProgress{TaskID: task, TaskType: "scan_library", Status: "running", StartedAt: &started,
			LibraryID: &library, Progress: Progress{Current: 45, Total: 100, Message: "Scanning"}}), SeesAll,
			map[string]any{"task_id": task.String(), "task_type": "scan_library", "status": "running",
				"progress": map[string]any{"current": 45., "total": 100., "message": "Scanning"}, "error": nil,
				"started_at": "2026-05-01T12:00:00Z", "completed_at": nil, "library_id": library.String(), "series_id": nil, "book_id": nil}},
		{TaskProgressed(TaskProgress{TaskID: task, TaskType: "x", Status: "pending"}), SeesAll,
			map[string]any{"task_id": task.String(), "task_type": "x", "status": "pending",
				"progress": map[string]any{"current": 0., "total": 0., "message": ""}, "error": nil,
				"started_at": nil, "completed_at": nil, "library_id": nil, "series_id": nil, "book_id": nil}},
		{ScanProgressed(ScanProgress{LibraryID: library, Status: "running", FilesTotal: 9, FilesProcessed: 4, SeriesFound: 2,
			BooksFound: 3, BooksUpdated: 1, StartedAt: &started}), SeesAll,
			map[string]any{"library_id": library.String(), "status": "running", "files_total": 9., "files_processed": 4.,
				"series_found": 2., "books_found": 3., "books_updated": 1., "books_deleted": 0., "errors": []any{},
				"started_at": "2026-05-01T12:00:00Z", "completed_at": nil}},
		{Resync("not_sent"), "", map[string]any{"reason": "not_sent"}},
		{Plugin("disabled", task), "PluginsManage", map[string]any{"type": "plugin_disabled", "plugin_id": task.String(), "timestamp": "now"}},
		{SeriesMetadataUpdated(Series{series, library}, task, "year"), "SeriesRead",
			with(s, "type", "series_metadata_updated", "plugin_id", task.String(), "fields_updated", []any{"year"})},
		{ReleaseAnnounced(Release{ID: book, SeriesID: series, SourceID: task, SeriesTitle: "S", Plugin: "p", Volume: new(2.0), Language: "en"}), SeesAll,
			map[string]any{"type": "release_announced", "ledger_id": book.String(), "series_id": series.String(), "series_title": "S", "source_id": task.String(),
				"plugin_id": "p", "chapter": nil, "volume": 2., "language": "en", "timestamp": "now"}},
		{ReleaseSourcePolled(task, "p", true), "PluginsManage",
			map[string]any{"type": "release_source_polled", "source_id": task.String(), "plugin_id": "p", "had_error": true, "timestamp": "now"}},
	} {
		if test.event.Permission != test.permission {
			t.Errorf("%s requires %q, want %q", test.event.Kind, test.event.Permission, test.permission)
		}
		if diff := cmp.Diff(test.want, shape(t, test.event)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.event.Kind, diff)
		}
	}
}

func TestLongestProgressFits(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("\x01<", 5000) // every byte is escaped with six
	scan := ScanProgress{}
	for range 100 {
		scan.Errors = append(scan.Errors, text)
	}
	if errors := shape(t, ScanProgressed(scan))["errors"].([]any); len(errors) != maxScanErrors {
		t.Errorf("%d errors sent, want %d", len(errors), maxScanErrors)
	}
	task := shape(t, TaskProgressed(TaskProgress{Error: &text, Progress: Progress{Message: text}}))
	if got := len(task["error"].(string)); got != maxTextBytes {
		t.Errorf("the error has %d bytes, want %d", got, maxTextBytes)
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		event Event
		want  string
	}{
		"empty kind":         {Event{Data: 1}, "event kind"},
		"kind with newline":  {Event{Kind: "a\nb", Data: 1}, "event kind"},
		"upper case kind":    {Event{Kind: "Book", Data: 1}, "event kind"},
		"tab in permission":  {Event{Kind: "a", Permission: "a\tb", Data: 1}, "permission"},
		"user is not a uuid": {Event{Kind: "a", UserID: "me", Data: 1}, "not a UUID"},
		"data is not JSON":   {Event{Kind: "a", Data: json.RawMessage("{")}, "not JSON"},
		"data cannot encode": {Event{Kind: "a", Data: make(chan int)}, "encode data"},
		"data too long":      {Event{Kind: "a", Data: strings.Repeat("x", maxData)}, "the limit is"},
	} {
		if _, err := test.event.encode(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.want)
		}
	}
}

// A truncated text ends with a whole character.
func TestCutTexts(t *testing.T) {
	t.Parallel()
	text := "x" + strings.Repeat("の", 400)
	errors := shape(t, ScanProgressed(ScanProgress{Errors: []string{text}}))["errors"].([]any)
	task := shape(t, TaskProgressed(TaskProgress{Error: &text, Progress: Progress{Message: text}}))
	for name, c := range map[string]struct {
		got  any
		most int
	}{"scan error": {errors[0], 200}, "task error": {task["error"], 1000}, "message": {task["progress"].(map[string]any)["message"], 1000}} {
		got := c.got.(string)
		if !strings.HasPrefix(text, got) || len(got) > c.most || len(got) < c.most-3 {
			t.Errorf("%s: %d bytes that end with %q", name, len(got), got[len(got)-6:])
		}
	}
}

func TestDataIsOneLine(t *testing.T) {
	t.Parallel()
	value, err := Event{Kind: "a", Data: json.RawMessage("{\n \"x\":\r\n \"y\\nz\"\n}")}.encode()
	if err != nil {
		t.Fatal(err)
	}
	if want := "a\t\t\t{\"x\":\"y\\nz\"}"; value != want {
		t.Errorf("encoded %q, want %q", value, want)
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	id, err := ParseID("1526919030474-55")
	if err != nil || id != (ID{1526919030474, 55}) || id.String() != "1526919030474-55" {
		t.Errorf("parsed %v, %v", id, err)
	}
	for _, bad := range []string{"", "-", "1", "1-", "-1", "1-2-3", "+", "a-b", "1--2", "18446744073709551616-0", "1-1 ", "$", strings.Repeat("1", 100) + "-1"} {
		if got, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) = %v, want an error", bad, got)
		}
	}
	ordered := []ID{{0, 0}, {0, 1}, {1, 0}, {1, 9}, {2, 0}}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := a.Compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%v.Compare(%v) = %d", a, b, got)
			}
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add("1-1\tbook_created\tBooksRead\t\t{}")
	f.Add("1-1\t")
	f.Fuzz(func(t *testing.T, payload string) {
		message, err := DecodeMessage(payload)
		if err != nil || message.Kind == "" {
			return
		}
		if strings.ContainsAny(message.Kind, "\r\n\t ") {
			t.Errorf("kind %q", message.Kind)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"EVENT_REPLAY": {Replay: 1_000_001}, "EVENT_RETENTION": {Retention: time.Second}, "EVENT_TIMEOUT": {Timeout: time.Hour},
		"EVENT_PAUSE": {Pause: time.Hour}, "EVENT_HOLD": {Hold: time.Hour}, "EVENT_QUEUE": {Queue: 1_000_001},
	} {
		if err := cfg.withDefaults().Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: %v, want an error that names %s", cfg, err, name)
		}
	}
}
