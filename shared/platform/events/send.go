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

// send empties the queue in order and ends; while Redis is away it tries again, ever less often.
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
		time.Sleep(retry/2 + rand.N(retry/2+1)) // jitter: many processes return to one Redis
		retry = min(2*retry, lastRetry)
	}
}

// next drops what was held for too long and returns the head of the queue, nil when it is empty.
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
	if !p.slow.IsZero() { // one job finds out: a Redis that is about to be ready could refuse the head of a pipeline and take the rest
		most = 1
	}
	return append([]*job(nil), p.queue[:min(len(p.queue), most)]...)
}

// roundTrip runs the jobs, several in one pipeline, and returns the error of each.
func (p *Publisher) roundTrip(batch []*job) []error {
	ctx, cancel := context.WithTimeout(context.Background(), roundTripTimeout)
	defer cancel()
	if len(batch) == 1 { // on a connection of the ordinary pool: pipelines have their own
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

// settle takes what is done off the queue and reports whether Redis took everything it was asked to.
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
		p.log.Info("events flow again", "waiting", p.held, "dropped", p.dropped)
		p.slow, p.dropped = time.Time{}, 0
	}
	return true
}

// overtaken are the jobs that failed before a later one of the same stream was taken, by a Redis that became ready
// within a pipeline: sent again they would be taken for ones that have been sent.
func overtaken(batch []*job, results []error) []bool {
	late, taken := make([]bool, len(batch)), map[string]bool{}
	for i := len(batch) - 1; i >= 0; i-- {
		stream := batch[i].keys[0]
		late[i] = results[i] != nil && taken[stream]
		taken[stream] = taken[stream] || results[i] == nil
	}
	return late
}

// withdraw takes off the queue what tells of streams that lack events. It is told later, and again and again, so it
// need not wait here, where the end of an invocation waits for it.
func (p *Publisher) withdraw(cause error) {
	p.queue = slices.DeleteFunc(p.queue, func(j *job) bool {
		if j.told {
			p.finish(j, cause)
			if !errors.Is(cause, redis.ErrClosed) { // else the process ends
				p.drop(j)
			}
		}
		return j.told
	})
}

// tellLater tries to tell a while later, also where this process has nothing else to send by then.
func (p *Publisher) tellLater() {
	if len(p.missed) == 0 || p.telling {
		return
	}
	p.telling = true
	time.AfterFunc(lastRetry/2+rand.N(lastRetry), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.telling = false
		if p.sending == nil { // else what is sent finds out
			p.tell()
			p.start()
		}
	})
}

func (p *Publisher) finish(j *job, err error) {
	p.held -= j.events
	j.wait.finish(err)
}

// retryable tells a Redis that is away or not ready from one that refuses the job itself.
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
