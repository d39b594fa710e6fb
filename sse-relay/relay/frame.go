package relay

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/longbox/longbox/shared/platform/events"
)

// frame is an event in wire format, as written to every client that may see it.
type frame struct {
	id         events.ID
	permission string
	user       string
	resync     bool // tells every client to reload its state
	bytes      []byte
}

const keepAlive = ": keep-alive\n\n"

// head holds the response headers of every stream.
var head = http.Header{
	"Content-Type":           {"text/event-stream"},
	"Cache-Control":          {"no-cache"},
	"X-Accel-Buffering":      {"no"},
	"X-Content-Type-Options": {"nosniff"},
}

// opening returns the response header, with the extra fields of this stream.
func opening(extra http.Header) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = head.Write(&b) // a Builder never fails
	_ = extra.Write(&b)
	b.WriteString("Connection: close\r\n\r\n")
	return b.String()
}

func eventFrame(m events.Message) frame {
	text := "id: " + m.ID.String() + "\nevent: " + m.Kind + "\ndata: " + m.Data + "\n\n"
	return frame{id: m.ID, permission: m.Permission, user: m.UserID, bytes: []byte(text)}
}

// resyncFrame says that events were lost. The client continues from id.
func resyncFrame(id events.ID, reason string) frame {
	text := fmt.Sprintf("id: %s\nevent: resync\ndata: {\"reason\":%q}\n\n", id, reason)
	return frame{id: id, resync: true, bytes: []byte(text)}
}

// Reasons of a resync event.
const (
	reasonMalformed = "malformed_last_event_id"
	reasonUnknown   = "unknown_last_event_id"
	reasonTrimmed   = "trimmed"
	reasonLost      = "history_lost" // Redis came back without the last events that the relay had seen
)

// retryLine asks the client to reconnect after a random delay, to spread reconnects.
func retryLine() string { return fmt.Sprintf("retry: %d\n", 1000+rand.N(4000)) }
