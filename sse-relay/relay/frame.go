package relay

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/longbox/longbox/shared/platform/events"
)

// frame is an event as it is written to every client that may see it.
type frame struct {
	id         events.ID
	permission string
	user       string
	resync     bool // tells every listener to fetch its state anew
	bytes      []byte
}

const keepAlive = ": keep-alive\n\n"

// head are the fields of the answer that every stream has.
var head = http.Header{
	"Content-Type":           {"text/event-stream"},
	"Cache-Control":          {"no-cache"},
	"X-Accel-Buffering":      {"no"},
	"X-Content-Type-Options": {"nosniff"},
}

// opening is the head of the answer, with the extra fields of this one.
func opening(extra http.Header) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = head.Write(&b) // a Builder takes everything
	_ = extra.Write(&b)
	b.WriteString("Connection: close\r\n\r\n")
	return b.String()
}

func eventFrame(m events.Message) frame {
	text := "id: " + m.ID.String() + "\nevent: " + m.Kind + "\ndata: " + m.Data + "\n\n"
	return frame{id: m.ID, permission: m.Permission, user: m.UserID, bytes: []byte(text)}
}

// resyncFrame says that events were lost; the client goes on from id.
func resyncFrame(id events.ID, reason string) frame {
	text := fmt.Sprintf("id: %s\nevent: resync\ndata: {\"reason\":%q}\n\n", id, reason)
	return frame{id: id, resync: true, bytes: []byte(text)}
}

// The reasons of a resync event.
const (
	reasonMalformed = "malformed_last_event_id"
	reasonUnknown   = "unknown_last_event_id"
	reasonTrimmed   = "trimmed"
	reasonLost      = "history_lost" // Redis came back without what the relay had seen last
)

// retryLine asks the client to come back after a random time, so that many do not come at once.
func retryLine() string { return fmt.Sprintf("retry: %d\n", 1000+rand.N(4000)) }
