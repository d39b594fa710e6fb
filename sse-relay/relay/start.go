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

// begin writes the start of a stream and the replay, then hands the connection to its shard. resume is the id of the
// last event that the client has; empty for none. It returns the number of replayed events. After an error the
// connection is dropped.
func (h *hub) begin(ctx context.Context, c *connection, extra http.Header, resume string) (int, error) {
	// Join first, replay second: events in between are held, so none is lost.
	ends := context.WithoutCancel(ctx) // the end of the connection is reported even if its client has left
	socket := c.socket
	tail, joined := c.topic.join(ctx, c)
	if !joined {
		socket.Close()
		c.shard.leave(c.seat)
		return 0, errors.New("the relay is stopping")
	}
	s := &start{hub: h, c: c, socket: socket, after: tail}
	if err := s.run(ctx, extra, resume, tail); err != nil {
		c.shard.send(ends, func(s *shard) { s.drop(c, replayFailed) })
		return s.replayed, err
	}
	after := s.after
	c.shard.send(ends, func(s *shard) { s.open(c, after) })
	return s.replayed, nil
}

// start is the state of a stream that is starting.
type start struct {
	hub      *hub
	c        *connection
	socket   *net.TCPConn // the shard owns the field of the connection
	after    events.ID    // live events start after this one
	replayed int
}

func (s *start) run(ctx context.Context, extra http.Header, resume string, tail events.ID) error {
	opening := opening(extra) + retryLine()
	if resume == "" {
		// An id alone is no event, but a client that is cut off before the first event can resume from it.
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

// replay writes the events after from, up to tail.
func (s *start) replay(ctx context.Context, from, tail events.ID) error {
	to := tail
	if from.Compare(tail) > 0 {
		to = from // this relay is behind the client's previous one: nothing to replay
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

// lost tells the client that its place is no longer in the stream, and why.
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

// write waits for the client, at most for the write timeout. No other client waits with it.
func (s *start) write(bytes []byte) error {
	if err := s.socket.SetWriteDeadline(time.Now().Add(s.hub.cfg.WriteTimeout)); err != nil {
		return err
	}
	if _, err := s.socket.Write(bytes); err != nil {
		return fmt.Errorf("the client does not accept the start of its stream: %w", err)
	}
	return s.socket.SetWriteDeadline(time.Time{})
}
