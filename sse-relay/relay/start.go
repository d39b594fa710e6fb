package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/longbox/longbox/shared/platform/events"
)

// begin writes the start of a stream, with what the client missed, and hands the connection to its
// shard. resume is the id of the last event that the client has; empty for none. It reports how many
// events were replayed. An error means that the connection was dropped.
func (h *hub) begin(ctx context.Context, c *connection, extra http.Header, resume string) (int, error) {
	// Live first, replay second: what happens in between is held back and nothing is missed.
	ends := context.WithoutCancel(ctx) // what becomes of the connection is told also where its client has left by now
	socket := c.socket
	tail, joined := c.topic.join(ctx, c)
	if !joined {
		socket.Close()
		c.shard.release(c)
		return 0, errors.New("the relay stops")
	}
	s := &start{hub: h, c: c, socket: socket, after: tail}
	if err := s.run(ctx, extra, resume, tail); err != nil {
		c.shard.send(ends, command{kind: dropIt, connection: c, reason: replayFailed})
		return s.replayed, err
	}
	c.shard.send(ends, command{kind: openIt, connection: c, after: s.after})
	return s.replayed, nil
}

// start is the state of one beginning stream.
type start struct {
	hub      *hub
	c        *connection
	socket   *net.TCPConn // the connection's own field is its shard's
	after    events.ID    // live events from here on
	replayed int
}

func (s *start) run(ctx context.Context, extra http.Header, resume string, tail events.ID) error {
	opening := opening(extra) + retryLine()
	if resume == "" {
		// The id alone makes no event, but a client that is cut off before the first one can resume.
		return s.write([]byte(opening + "id: " + tail.String() + "\n\n"))
	}
	if err := s.write([]byte(opening + "\n")); err != nil {
		return err
	}
	from, err := events.ParseID(resume)
	if err != nil {
		return s.write(resyncFrame(tail, reasonMalformed).bytes)
	}
	if from == tail {
		return nil
	}
	return s.replay(ctx, from, tail)
}

// replay writes what lies behind from, up to tail.
func (s *start) replay(ctx context.Context, from, tail events.ID) error {
	to := tail
	if from.Compare(tail) > 0 {
		to = from // this relay is behind the one the client came from: nothing to replay
	}
	for {
		page, found, err := s.hub.after(ctx, s.c.topic.key, from, &to)
		if err != nil {
			return err
		}
		if !found {
			return s.lost(ctx, from, tail)
		}
		var text []byte
		now := time.Now().UnixNano()
		for _, m := range page {
			if from = m.ID; m.Kind != "" && s.c.grant.valid(now) && s.c.grant.sees(m.Permission, m.UserID) {
				text = append(text, eventFrame(m).bytes...)
				s.replayed++
			}
		}
		if err := s.write(text); err != nil {
			return err
		}
		if len(page) < s.hub.cfg.ReplayPage-1 {
			s.after = to
			return nil
		}
	}
}

// lost tells the client that the stream does not have its place any more, and why.
func (s *start) lost(ctx context.Context, from, tail events.ID) error {
	if err := s.hub.enter(ctx); err != nil {
		return err
	}
	oldest, err := events.Range(ctx, s.hub.rdb, s.c.topic.key, events.ID{}, nil, 1)
	s.hub.leave()
	if err != nil {
		return err
	}
	why := reasonUnknown
	if len(oldest) > 0 && from.Compare(oldest[0].ID) < 0 {
		why = reasonTrimmed
	}
	return s.write(resyncFrame(tail, why).bytes)
}

// write waits for the client, at most the write timeout; no other client waits with it.
func (s *start) write(bytes []byte) error {
	if err := s.socket.SetWriteDeadline(time.Now().Add(s.hub.cfg.WriteTimeout)); err != nil {
		return err
	}
	if _, err := s.socket.Write(bytes); err != nil {
		return fmt.Errorf("the client does not take the start of its stream: %w", err)
	}
	return s.socket.SetWriteDeadline(time.Time{})
}
