package events

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

var (
	// ErrDelayed means that Redis did not answer in time. The events are kept in memory and sent later.
	ErrDelayed = errors.New("events delayed: Redis does not answer, so they wait in memory")
	// ErrDropped means that events were not sent and never will be.
	ErrDropped = errors.New("events dropped")
)

// publishScript appends and publishes events. KEYS: the publisher's mark, then one stream per topic. ARGV: this job's
// sequence number, entries to keep, seconds to keep them, then pairs of topic index and value. The mark makes a retry
// after a lost response write nothing twice. Before its first event, each channel gets the newest id of its stream with
// an empty value: a relay that has not seen this id reads the stream.
const publishScript = `
local done = redis.call('GET', KEYS[1])
if done and tonumber(done) >= tonumber(ARGV[1]) then return 0 end
local used = {}
for i = 4, #ARGV, 2 do
  local key = KEYS[tonumber(ARGV[i]) + 2]
  if not used[key] then
    local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
    if newest then redis.call('PUBLISH', key, newest[1] .. '\t') end
    used[key] = true
  end
  local id = redis.call('XADD', key, 'MAXLEN', '~', ARGV[2], '*', 'e', ARGV[i + 1])
  redis.call('PUBLISH', key, id .. '\t' .. ARGV[i + 1])
end
for key in pairs(used) do redis.call('EXPIRE', key, ARGV[3]) end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 120)
return 1`

// generationScript replaces the access generation and announces the new one. The random value never equals an earlier
// one, even if Redis lost its data in between.
const generationScript = `
redis.call('SET', KEYS[1], ARGV[1])
redis.call('PUBLISH', KEYS[1], ARGV[1])
return 1`

// elsewhereScript invalidates what processes have cached about a tenant's books. Cached entries live for a minute. If
// the key is lost, they stay for that long.
const elsewhereScript = `redis.call('SET', KEYS[1], ARGV[1], 'EX', 120)
return 1`

const (
	jobEvents   = 200 // events per script call: keeps one call below about 2 ms of Redis' time
	pipelineLen = 64  // script calls per round trip
)

// Publisher sends events. It is safe for concurrent use and needs no closing.
type Publisher struct {
	rdb  redis.UniversalClient
	cfg  Config
	log  *slog.Logger
	mark func() string // name of this publisher in Redis

	mu      sync.Mutex
	queue   []*job
	held    int                          // events in queue
	seq     uint64                       // of the newest job
	sending chan struct{}                // closed when the queue is empty; nil while nothing is being sent
	slow    time.Time                    // until then no call waits
	dropped uint64                       // events lost since the outage began
	well    bool                         // the last job sent was accepted by Redis
	missed  map[uuid.UUID]map[Topic]bool // what listeners and processes must be told
	telling bool                         // a timer is set for it
}

// What can be missed beside events of the topics.
const (
	access    Topic = ""          // a change of access
	elsewhere Topic = "elsewhere" // that cached books must be dropped
)

type job struct {
	script string
	tenant uuid.UUID
	topics map[Topic]bool // topics of its events, at least
	keys   []string
	args   []any
	events int
	told   bool // it tells listeners of a stream that lacks events
	since  time.Time
	wait   *wait
}

// wait is the wait of one call: for all of its jobs, or the first failure.
type wait struct {
	left int
	done chan struct{}
	err  error
}

func (w *wait) finish(err error) {
	if w.left--; w.left >= 0 && (err != nil || w.left == 0) {
		w.err, w.left = err, 0
		close(w.done)
	}
}

// New returns a publisher on rdb. log may be nil. The configuration must be valid.
func New(rdb redis.UniversalClient, cfg Config, log *slog.Logger) *Publisher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Publisher{rdb: rdb, cfg: cfg.withDefaults(), log: log, mark: sync.OnceValue(rand.Text), well: true, missed: map[uuid.UUID]map[Topic]bool{}}
}

// Publish sends the events of a tenant in order, with one round trip for up to 12,800 events. It returns nil when Redis
// has them, [ErrDelayed] when they wait in memory, [ErrDropped] when the memory is full, and an error for an event that
// cannot be encoded (then none is sent). Callers log the error and continue.
func (p *Publisher) Publish(ctx context.Context, tenant uuid.UUID, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	args := make([]any, 0, 2*len(events))
	topics := map[Topic]bool{}
	moved := false
	for _, e := range events {
		topic := slices.Index(Topics[:], e.Topic)
		if topic < 0 {
			return fmt.Errorf("publish %s: unknown topic %q", e.Kind, e.Topic)
		}
		value, err := e.encode()
		if err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		args = append(args, topic, value)
		topics[e.Topic] = true
		moved = moved || e.Elsewhere
	}
	jobs := p.jobs(tenant, topics, args)
	if moved { // first, so that listeners who then send a request get the new state
		jobs = append([]*job{dropBooks(tenant)}, jobs...)
	}
	return p.enqueue(ctx, jobs)
}

// jobs returns the script calls for pairs of topic index and value.
func (p *Publisher) jobs(tenant uuid.UUID, topics map[Topic]bool, args []any) (jobs []*job) {
	keys := []string{"lb:{" + tenant.String() + "}:publisher:" + p.mark()}
	for _, topic := range Topics {
		keys = append(keys, Key(tenant, topic))
	}
	for part := range slices.Chunk(args, 2*jobEvents) {
		head := []any{nil, p.cfg.Replay, int64(p.cfg.Retention / time.Second)}
		jobs = append(jobs, &job{script: publishScript, tenant: tenant, topics: topics, keys: keys, args: append(head, part...), events: len(part) / 2})
	}
	return jobs
}

// ChangeAccess announces that the access of some user or key of the tenant has changed. Within a second, relays check
// every connection of the tenant again. It waits and fails like [Publisher.Publish].
func (p *Publisher) ChangeAccess(ctx context.Context, tenant uuid.UUID) error {
	return p.enqueue(ctx, []*job{changeAccess(tenant)})
}

func changeAccess(tenant uuid.UUID) *job {
	return &job{script: generationScript, tenant: tenant, topics: map[Topic]bool{access: true}, keys: []string{GenerationKey(tenant)},
		args: []any{rand.Text()}, events: 1}
}

func dropBooks(tenant uuid.UUID) *job {
	return &job{script: elsewhereScript, tenant: tenant, topics: map[Topic]bool{elsewhere: true}, keys: []string{BooksKey(tenant)},
		args: []any{rand.Text()}, events: 1}
}

// Flush waits until everything is sent. A process calls it before it ends.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	sending := p.sending
	p.mu.Unlock()
	if sending == nil {
		return nil
	}
	select {
	case <-sending:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("flush events: %w", ctx.Err())
	}
}

func (p *Publisher) enqueue(ctx context.Context, jobs []*job) error {
	wait := &wait{left: len(jobs), done: make(chan struct{})}
	count := 0
	for _, j := range jobs {
		count += j.events
	}
	p.mu.Lock()
	if p.held+count > p.cfg.Queue {
		for _, j := range jobs {
			p.drop(j)
		}
		p.start()
		p.mu.Unlock()
		return fmt.Errorf("%w: %d more would exceed the limit of %d unsent events (EVENT_QUEUE)", ErrDropped, count, p.cfg.Queue)
	}
	now := time.Now()
	p.append(jobs, now, wait)
	p.start()
	waiting := now.After(p.slow)
	p.mu.Unlock()
	if !waiting {
		return ErrDelayed
	}
	timer := time.NewTimer(p.cfg.Timeout)
	defer timer.Stop()
	select {
	case <-wait.done:
		return wait.err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrDelayed, ctx.Err())
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-wait.done:
		return wait.err
	default:
		p.slow = time.Now().Add(p.cfg.Pause)
		return ErrDelayed
	}
}

// append adds jobs to the queue. The caller holds p.mu, as for the two functions below.
func (p *Publisher) append(jobs []*job, now time.Time, wait *wait) {
	for _, j := range jobs {
		p.seq++
		if j.script == publishScript {
			j.args[0] = p.seq
		}
		j.since, j.wait = now, wait
		p.held += j.events
	}
	p.queue = append(p.queue, jobs...)
}

// start starts sending the queue, unless it is running.
func (p *Publisher) start() {
	if p.sending == nil {
		p.sending = make(chan struct{})
		go p.send(p.sending)
	}
}

// drop counts a job that is not sent, and records the streams that lack it.
func (p *Publisher) drop(j *job) {
	if !j.told {
		p.dropped += uint64(j.events)
	}
	if p.missed[j.tenant] == nil {
		p.missed[j.tenant] = map[Topic]bool{}
	}
	maps.Copy(p.missed[j.tenant], j.topics)
}

// tell queues an event for the listeners of each stream that lacks some: they must reload their state. A change of
// access is announced again, and cached books are dropped.
func (p *Publisher) tell() {
	for tenant, topics := range p.missed {
		var args []any
		for i, topic := range Topics {
			if topics[topic] {
				args = append(args, i, "resync\t\t\t"+`{"reason":"not_sent"}`)
			}
		}
		jobs := p.jobs(tenant, topics, args)
		if topics[elsewhere] {
			jobs = append([]*job{dropBooks(tenant)}, jobs...)
		}
		if topics[access] {
			jobs = append(jobs, changeAccess(tenant))
		}
		for _, j := range jobs {
			j.told = true
		}
		p.append(jobs, time.Now(), &wait{left: len(jobs), done: make(chan struct{})})
	}
	clear(p.missed)
}
