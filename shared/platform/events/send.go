package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	roundTripTimeout = 2 * time.Second
	firstRetry       = 50 * time.Millisecond
	lastRetry        = 2 * time.Second
)

// send sends the queue in order and returns when it is empty. While Redis is down it retries with growing delays.
func (p *Publisher) send(done chan struct{}) {
	defer close(done)
	retry := firstRetry
	for {
		batch := p.next()
		if batch == nil {
			return
		}
		results := p.roundTrip(batch)
		if p.settle(batch, results) {
			retry = firstRetry
			continue
		}
		time.Sleep(retry/2 + rand.N(retry/2+1)) // jitter: many processes reconnect to one Redis
		retry = min(2*retry, lastRetry)
	}
}

// next drops jobs that were held for too long and returns the head of the queue, or nil if it is empty.
func (p *Publisher) next() []*job {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := time.Now().Add(-p.cfg.Hold)
	for len(p.queue) > 0 && p.queue[0].since.Before(limit) {
		p.drop(p.queue[0])
		p.finish(p.queue[0], fmt.Errorf("%w: Redis was away for more than %s", ErrDropped, p.cfg.Hold))
		p.queue = p.queue[1:]
	}
	if p.well {
		p.tell()
	}
	if len(p.queue) == 0 {
		p.queue, p.sending = nil, nil
		p.tellLater()
		return nil
	}
	most := pipelineLen
	// Send one job first: a Redis that is starting could refuse the head of a pipeline and accept the rest.
	if !p.slow.IsZero() {
		most = 1
	}
	return append([]*job(nil), p.queue[:min(len(p.queue), most)]...)
}

// roundTrip runs the jobs, several in one pipeline, and returns the error of each.
func (p *Publisher) roundTrip(batch []*job) []error {
	ctx, cancel := context.WithTimeout(context.Background(), roundTripTimeout)
	defer cancel()
	if len(batch) == 1 { // uses the ordinary pool: pipelines have connections of their own
		return []error{p.rdb.Eval(ctx, batch[0].script, batch[0].keys, batch[0].args...).Err()}
	}
	pipe := p.rdb.Pipeline()
	commands := make([]*redis.Cmd, len(batch))
	for i, j := range batch {
		commands[i] = pipe.Eval(ctx, j.script, j.keys, j.args...)
	}
	_, first := pipe.Exec(ctx)
	results := make([]error, len(batch))
	for i, command := range commands {
		if results[i] = command.Err(); results[i] == nil && command.Val() == nil {
			results[i] = first // never sent
		}
	}
	return results
}

// settle removes the finished jobs from the queue and reports whether Redis accepted all.
func (p *Publisher) settle(batch []*job, results []error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var again []*job
	var cause error
	p.well = true
	late := overtaken(batch, results)
	for i, j := range batch {
		switch err := results[i]; {
		case err == nil:
			p.finish(j, nil)
		case retryable(err) && !late[i]:
			again, cause, p.well = append(again, j), err, false
			j.wait.finish(fmt.Errorf("%w: %w", ErrDelayed, err))
		default:
			p.well = false
			p.drop(j)
			p.finish(j, fmt.Errorf("%w: %w", ErrDropped, err))
		}
	}
	p.queue = append(again, p.queue[len(batch):]...)
	if cause != nil {
		p.withdraw(cause)
		if p.slow.IsZero() {
			p.log.Warn("events wait in memory: Redis does not answer", "error", cause, "waiting", p.held)
		}
		p.slow = time.Now().Add(p.cfg.Pause)
		return false
	}
	if !p.slow.IsZero() || p.dropped > 0 {
		p.log.Info("events are sent again", "waiting", p.held, "dropped", p.dropped)
		p.slow, p.dropped = time.Time{}, 0
	}
	return true
}

// overtaken reports the failed jobs that are followed by a successful one of the same stream, because Redis became
// ready within a pipeline. If they were sent again, they would count as already sent.
func overtaken(batch []*job, results []error) []bool {
	late, taken := make([]bool, len(batch)), map[string]bool{}
	for i := len(batch) - 1; i >= 0; i-- {
		stream := batch[i].keys[0]
		late[i] = results[i] != nil && taken[stream]
		taken[stream] = taken[stream] || results[i] == nil
	}
	return late
}

// withdraw removes the jobs from the queue that tell listeners of lost events. They are queued again later, so the end
// of an invocation need not wait for them.
func (p *Publisher) withdraw(cause error) {
	p.queue = slices.DeleteFunc(p.queue, func(j *job) bool {
		if j.told {
			p.finish(j, cause)
			if !errors.Is(cause, redis.ErrClosed) { // otherwise the process ends
				p.drop(j)
			}
		}
		return j.told
	})
}

// tellLater tries again after a while, even if this process has nothing else to send.
func (p *Publisher) tellLater() {
	if len(p.missed) == 0 || p.telling {
		return
	}
	p.telling = true
	time.AfterFunc(lastRetry/2+rand.N(lastRetry), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.telling = false
		if p.sending == nil { // otherwise the running send finds out
			p.tell()
			p.start()
		}
	})
}

func (p *Publisher) finish(j *job, err error) {
	p.held -= j.events
	j.wait.finish(err)
}

// retryable reports whether Redis is down or not ready, rather than refusing the job itself.
func retryable(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return true
	}
	for _, state := range []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MISCONF", "NOREPLICAS", "BUSY ", "OOM"} {
		if strings.HasPrefix(reply.Error(), state) {
			return true
		}
	}
	return false
}
