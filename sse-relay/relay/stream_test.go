package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
)

func TestWireFormat(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/v1/events/stream HTTP/1.1\r\nHost: a.test\r\n%s\r\nAccept: text/event-stream\r\n\r\n", token)
	in := bufio.NewReader(conn)
	read := func(end string) string {
		text := ""
		for !strings.HasSuffix(text, end) {
			b, err := in.ReadByte()
			if err != nil {
				t.Fatalf("%v after %q", err, text)
			}
			text += string(b)
		}
		return text
	}
	head := read("\r\n\r\n")
	for _, line := range []string{"HTTP/1.1 200 OK\r\n", "Content-Type: text/event-stream\r\n", "Cache-Control: no-cache\r\n", "X-Accel-Buffering: no\r\n"} {
		if !strings.Contains(head, line) {
			t.Errorf("the head lacks %q: %q", line, head)
		}
	}
	if start := read("\n\n"); !regexp.MustCompile(`^retry: [1-4]\d\d\d\nid: \d+-\d+\n\n$`).MatchString(start) {
		t.Errorf("the stream starts with %q", start)
	}
	book, series, library := uuid.New(), uuid.New(), uuid.New()
	s.publish(tenant, events.BookCreated(events.Book{ID: book, SeriesID: series, LibraryID: library}))
	want := fmt.Sprintf(`^id: \d+-\d+\nevent: book_created\ndata: {"type":"book_created","book_id":"%s","series_id":"%s","library_id":"%s","timestamp":"[^"]+Z"}\n\n$`,
		book, series, library)
	if block := read("\n\n"); !regexp.MustCompile(want).MatchString(block) {
		t.Errorf("the event is %q, want %s", block, want)
	}
}

// HEAD returns the response header and no stream: a body would be taken for the next response on the connection.
func TestHead(t *testing.T) {
	s := newStage(t, func(c *Config) { c.MaxPerUser = 1 })
	token, _ := s.account(uuid.New())
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for _, path := range []string{"/api/v1/events/stream", "/api/v1/tasks/stream", "/api/v1/scans/stream"} {
		fmt.Fprintf(conn, "HEAD %s HTTP/1.1\r\nHost: a.test\r\n%s\r\n\r\n", path, token)
		answer, err := http.ReadResponse(in, &http.Request{Method: http.MethodHead})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" || answer.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %s %v", path, answer.Status, answer.Header)
		}
	}
	s.open("/api/v1/events/stream", token) // nothing of it takes the user's only place
	s.taken(1)
}

func TestKeepAlive(t *testing.T) {
	s := newStage(t, func(c *Config) { c.KeepAlive = 60 * time.Millisecond })
	token, _ := s.account(uuid.New())
	conn := s.open("/api/v1/tasks/stream", token)
	start := time.Now()
	const count = 10
	for range count {
		line := make([]byte, len(": keep-alive\n\n"))
		if _, err := io.ReadFull(conn.Conn, line); err != nil || string(line) != ": keep-alive\n\n" {
			t.Fatalf("%q, %v: want a keep-alive comment", line, err)
		}
	}
	if passed := time.Since(start); passed < (count-1)*60*time.Millisecond-30*time.Millisecond {
		t.Errorf("%d keep-alives within %s, want one every 60ms", count, passed)
	}
}

func TestStreamsAndTenantsAreApart(t *testing.T) {
	s := newStage(t, nil)
	mine, other := uuid.New(), uuid.New()
	token, _ := s.account(mine)
	foreign, _ := s.account(other)
	entities, tasks, scans := s.open("/api/v1/events/stream", token), s.open("/api/v1/tasks/stream", token), s.open("/api/v1/scans/stream", token)
	theirs := s.open("/api/v1/events/stream", foreign)
	s.publish(other, events.LibraryCreated(uuid.New()))
	s.publish(mine, events.TaskProgressed(events.TaskProgress{TaskType: "scan_library"}),
		events.ScanProgressed(events.ScanProgress{}), events.LibraryUpdated(uuid.New()))
	s.expect(tasks, "task_progress")
	s.expect(scans, "scan_progress")
	s.expect(entities, "library_updated")
	s.expect(theirs, "library_created")
	s.publish(mine, events.LibraryDeleted(uuid.New()))
	s.publish(other, events.LibraryDeleted(uuid.New()))
	s.expect(entities, "library_deleted")
	s.expect(theirs, "library_deleted")
}

func TestEventsAreFiltered(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, account := s.account(tenant)
	fewToken, few := s.account(tenant)
	few.Permissions = []string{"LibrariesRead", "BooksRead"}
	s.api.Set(strings.TrimPrefix(fewToken, "Authorization: "), few)
	all, some := s.open("/api/v1/events/stream", token), s.open("/api/v1/events/stream", fewToken)
	start := some.LastID
	list := []events.Event{
		{Topic: events.Entities, Kind: "for_series", Permission: "SeriesRead", Data: 1},
		{Topic: events.Entities, Kind: "for_first", UserID: strings.ToUpper(account.User.String()), Data: 2},
		{Topic: events.Entities, Kind: "for_second", UserID: few.User.String(), Permission: "BooksRead", Data: 3},
		{Topic: events.Entities, Kind: "for_neither", UserID: few.User.String(), Permission: "SystemAdmin", Data: 4},
		{Topic: events.Entities, Kind: "for_all", Data: 5},
	}
	s.publish(tenant, list...)
	for _, kind := range []string{"for_series", "for_first", "for_all"} {
		s.expect(all, kind)
	}
	// Events of tasks and scans may name files: clients who do not see all series do not receive them.
	tasks, hidden := s.open("/api/v1/tasks/stream", token), s.open("/api/v1/tasks/stream", fewToken)
	s.publish(tenant, events.TaskProgressed(events.TaskProgress{}), events.Event{Topic: events.Tasks, Kind: "for_all", Data: 6})
	s.expect(tasks, "task_progress")
	s.expect(hidden, "for_all")
	again := s.open("/api/v1/events/stream", fewToken, "Last-Event-ID: "+start) // replay filters alike
	for _, kind := range []string{"for_second", "for_all"} {
		s.expect(some, kind)
		s.expect(again, kind)
	}
}

// A client that sees none of the events of its stream can resume after them: once they are trimmed, it has lost
// nothing.
func TestPlaceMovesOverHiddenEvents(t *testing.T) {
	s := newStage(t, func(c *Config) { c.KeepAlive = 60 * time.Millisecond })
	tenant := uuid.New()
	token, few := s.account(tenant)
	few.Permissions = []string{"LibrariesRead"}
	s.api.Set(strings.TrimPrefix(token, "Authorization: "), few)
	c := s.open("/api/v1/tasks/stream", token)
	start := c.LastID
	s.publish(tenant, events.TaskProgressed(events.TaskProgress{}))
	for ids, comments := 0, 0; comments < 100 && ids == 0; {
		b, err := c.Next()
		if err != nil || b.Event != "" {
			t.Fatalf("%+v, %v: want no event", b, err)
		}
		if b.Comment != "" {
			comments++
		}
		if c.LastID != start {
			ids++
		}
	}
	stream := events.Key(tenant, events.Tasks)
	if last, err := events.Tail(t.Context(), s.redis.Client, stream); err != nil || c.LastID != last.String() {
		t.Fatalf("the place is %s, the last event %s, %v", c.LastID, last, err)
	}
	s.publish(tenant, events.Event{Topic: events.Tasks, Kind: "for_all", Data: 1})
	if err := s.redis.Client.XTrimMaxLen(t.Context(), stream, 2).Err(); err != nil {
		t.Fatal(err)
	}
	s.expect(s.open("/api/v1/tasks/stream", token, "Last-Event-ID: "+c.LastID), "for_all")
	s.expect(c, "for_all")
}

func TestReplay(t *testing.T) {
	s := newStage(t, func(c *Config) { c.ReplayPage = 7 })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	first := s.open("/api/v1/events/stream", token)
	start := first.LastID
	for i := range 50 {
		s.publish(tenant, numbered("n", i))
	}
	var ids []string
	for i := range 50 {
		b := s.expect(first, "n")
		if b.Data != fmt.Sprint(i) {
			t.Fatalf("event %d has data %s", i, b.Data)
		}
		ids = append(ids, b.ID)
	}
	check := func(c interface{ Close() error }, next func() (string, error), from int) {
		t.Helper()
		defer c.Close()
		for i := from; i < 50; i++ {
			if data, err := next(); err != nil || data != fmt.Sprint(i) {
				t.Fatalf("replay from %d: got %s, %v, want %d", from, data, err, i)
			}
		}
	}
	for _, from := range []int{0, 1, 6, 7, 8, 13, 14, 49, 50} {
		id := start
		if from > 0 {
			id = ids[from-1]
		}
		for name, c := range map[string]func() (string, []string){
			"header": func() (string, []string) {
				return "/api/v1/events/stream", []string{token, "Last-Event-ID: " + id}
			},
			"query":       func() (string, []string) { return "/api/v1/events/stream?lastEventId=" + id, []string{token} },
			"other query": func() (string, []string) { return "/api/v1/events/stream?last_event_id=" + id, []string{token} },
			"header wins": func() (string, []string) {
				return "/api/v1/events/stream?lastEventId=nonsense", []string{token, "Last-Event-ID: " + id}
			},
		} {
			path, lines := c()
			client := s.open(path, lines...)
			check(client, func() (string, error) { b, err := client.NextEvent(); return b.Data, err }, from)
			_ = name
		}
	}
	late := s.open("/api/v1/events/stream", token, "Last-Event-ID: "+ids[48])
	s.expect(late, "n")
	s.publish(tenant, numbered("live", 1))
	s.expect(late, "live")
}

// Whoever loses access while missed events are written gets no more of them.
func TestNothingIsReplayedWithoutAccess(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	c := s.open("/api/v1/events/stream", token)
	from, err := events.ParseID(c.LastID)
	if err != nil {
		t.Fatal(err)
	}
	s.publish(tenant, numbered("n", 1))
	s.expect(c, "n")
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	topic, _ := s.server.hub.find(events.Key(tenant, events.Entities))
	topic.mu.Lock()
	to := topic.last
	topic.mu.Unlock()
	for _, revoked := range []bool{false, true} {
		g := &grant{}
		g.revoked.Store(revoked)
		start := &start{hub: s.server.hub, c: &connection{seat: seat{topic: topic, grant: g}}, socket: conn.(*net.TCPConn)}
		if err := start.replay(t.Context(), from, to); err != nil || start.replayed == 1 == revoked {
			t.Errorf("revoked %v: %d replayed, %v", revoked, start.replayed, err)
		}
	}
}

// An entry that the relay cannot decode does not hide the others.
func TestReplayOverAnUnknownEntry(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	first := s.open("/api/v1/events/stream", token)
	start := first.LastID
	if err := s.redis.Client.XAdd(t.Context(), &redis.XAddArgs{Stream: events.Key(tenant, events.Entities), Values: []string{"e", "of another form"}}).Err(); err != nil {
		t.Fatal(err)
	}
	s.publish(tenant, numbered("n", 1))
	s.expect(first, "n")
	s.expect(s.open("/api/v1/events/stream", token, "Last-Event-ID: "+start), "n")
}

func TestResync(t *testing.T) {
	s := newStage(t, nil)
	tenant, other := uuid.New(), uuid.New()
	token, _ := s.account(tenant)
	foreignToken, _ := s.account(other)
	foreign := s.open("/api/v1/events/stream", foreignToken)
	first := s.open("/api/v1/events/stream", token)
	start := first.LastID
	s.publish(other, numbered("secret", 1))
	foreignID := s.expect(foreign, "secret").ID
	short := events.New(s.redis.Client, events.Config{Timeout: time.Second, Replay: 100}, nil)
	for i := range 400 { // trims what the first client has seen
		if err := short.Publish(t.Context(), tenant, numbered("n", i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 400 { // what the relay has not seen yet would follow the resync event, as it should
		s.expect(first, "n")
	}
	for name, test := range map[string]struct{ id, reason string }{
		"malformed":       {"nonsense", reasonMalformed},
		"range syntax":    {"(1-1", reasonMalformed},
		"too long":        {strings.Repeat("9", 5000), reasonMalformed},
		"trimmed":         {start, reasonTrimmed},
		"zero":            {"0-0", reasonTrimmed},
		"foreign":         {foreignID, reasonTrimmed},
		"future":          {"99999999999999-0", reasonUnknown},
		"largest":         {"18446744073709551615-18446744073709551615", reasonUnknown},
		"between entries": {betweenLast(t, s, tenant), reasonUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.open("/api/v1/events/stream", token, "Last-Event-ID: "+test.id)
			b := s.expect(c, "resync")
			if b.Data != `{"reason":"`+test.reason+`"}` {
				t.Errorf("data %s, want the reason %s", b.Data, test.reason)
			}
			s.publish(tenant, numbered("after", 1))
			after := s.expect(c, "after")
			again := s.open("/api/v1/events/stream", token, "Last-Event-ID: "+b.ID) // its id is a good one
			if got := s.expect(again, "after"); got.ID != after.ID {
				t.Errorf("from the resync on: %s, want %s", got.ID, after.ID)
			}
		})
	}
}

// betweenLast returns an id that looks right but is not in the stream.
func betweenLast(t *testing.T, s *stage, tenant uuid.UUID) string {
	t.Helper()
	id, err := events.Tail(t.Context(), s.redis.Client, events.Key(tenant, events.Entities))
	if err != nil {
		t.Fatal(err)
	}
	id.Seq += 5_000_000
	return id.String()
}

func TestClosedClientIsNoticed(t *testing.T) {
	s := newStage(t, func(c *Config) { c.MaxPerUser = 3 })
	token, _ := s.account(uuid.New())
	for range 20 { // far more than fit at once: each must be gone soon after it closes
		eventually(t, "a place for the next stream", func() bool { return s.server.limits.open() < 3 })
		s.open("/api/v1/events/stream", token).Close()
	}
	eventually(t, "every place is free", func() bool { return s.server.limits.open() == 0 })
}

func TestUnusedTopicIsForgotten(t *testing.T) {
	s := newStage(t, nil)
	tenant := uuid.New()
	token, _ := s.account(tenant)
	channels := func() int {
		return len(s.redis.Client.PubSubChannels(t.Context(), "*").Val())
	}
	c := s.open("/api/v1/events/stream", token)
	eventually(t, "two channels", func() bool { return channels() == 2 })
	s.server.hub.forget()
	s.server.hub.forget()
	c.Close()
	eventually(t, "the client is gone", func() bool { return s.server.limits.open() == 0 })
	if channels() != 2 {
		t.Error("a topic with a listener was forgotten")
	}
	s.server.hub.forget()
	s.server.hub.forget()
	eventually(t, "no channel", func() bool { return channels() == 0 })
	again := s.open("/api/v1/events/stream", token)
	s.publish(tenant, numbered("n", 1))
	s.expect(again, "n")
}

// The last topic of a tenant keeps the channel of its access.
func TestOneOfTwoTopicsIsForgotten(t *testing.T) {
	s := newStage(t, func(c *Config) { c.AccessInterval = time.Minute })
	tenant := uuid.New()
	token, _ := s.account(tenant)
	stays, closes := s.open("/api/v1/events/stream", token), s.open("/api/v1/tasks/stream", token)
	channels := func() int {
		return len(s.redis.Client.PubSubChannels(t.Context(), "*").Val())
	}
	eventually(t, "three channels", func() bool { return channels() == 3 })
	closes.Close()
	eventually(t, "the client is gone", func() bool { return s.server.limits.open() == 1 })
	s.server.hub.forget()
	s.server.hub.forget()
	eventually(t, "two channels", func() bool { return channels() == 2 })
	s.api.Remove(strings.TrimPrefix(token, "Authorization: "))
	if err := s.publisher.ChangeAccess(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	s.ended(stays, 10*time.Second)
}
