package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Delays between restarts of a crashing child: doubled each time, reset after a minute of life.
const (
	shortestWait = 200 * time.Millisecond
	longestWait  = 30 * time.Second
	steady       = time.Minute
)

// keep restarts the child when it ends or when a restart is requested, until it is stopped.
func (p *Process) keep(r *run) {
	defer close(p.stopped)
	defer p.retired.Wait()
	wait, born := shortestWait, time.Now()
	for {
		pause := wait
		if r != nil {
			select {
			case <-p.stop:
				p.end(r)
				return
			case why := <-p.spec.Renew:
				p.s.console.Say("Longbox: restarting %s: %s", p.spec.Name, why)
				p.retire(r)
				pause = 0
			case <-r.done:
				if time.Since(born) > steady {
					wait, pause = shortestWait, shortestWait
				}
				p.s.console.Say("Longbox: %s ended (%s); %srestarting it in %v", p.spec.Name, state(r.err), lastWords(r.tail), pause)
			}
		}
		select {
		case <-p.stop:
			return
		case <-time.After(pause):
		}
		wait = min(2*wait, longestWait)
		next, err := p.start()
		if err != nil {
			p.s.console.Say("Longbox: %v; trying again in %v", err, wait)
		}
		r, born = next, time.Now()
	}
}

// retire ends a run for the next one. It returns when the next one may start: the old run takes no new work, and may
// finish what it has begun.
func (p *Process) retire(r *run) {
	if p.spec.Drain == 0 {
		p.end(r)
		return
	}
	_ = r.cmd.Process.Signal(p.spec.Stop)
	ctx, cancel := context.WithTimeout(context.Background(), p.spec.Grace)
	defer cancel()
	_ = poll(ctx, func(ctx context.Context) error {
		if p.spec.Ready(ctx) == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	if ctx.Err() != nil {
		p.end(r)
		return
	}
	name := fmt.Sprintf("%s before %d", p.spec.Name, r.note.PID)
	p.s.noted(p.s.ledger.set(name, r.note))
	p.s.noted(p.s.ledger.remove(p.spec.Name))
	p.retired.Go(func() {
		select {
		case <-r.done:
		case <-p.stop:
		case <-time.After(p.spec.Drain):
		}
		p.finish(r)
		p.s.noted(p.s.ledger.remove(name))
	})
}

// lastWords formats what a child wrote before it ended, if anything.
func lastWords(t *tail) string {
	if said := t.String(); said != "" {
		return "its last output: " + said + "; "
	}
	return ""
}

// Stop ends the child permanently and returns when it is gone. It may be called more than once.
func (p *Process) Stop() {
	p.once.Do(func() {
		close(p.stop)
		<-p.stopped
		if err := p.log.Close(); err != nil {
			p.s.console.Say("Longbox: log of %s: %v", p.spec.Name, err)
		}
	})
}
