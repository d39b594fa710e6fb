package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/platform/events"
)

const (
	readyTimeout = 3 * time.Second
	stopTimeout  = 4 * time.Second
)

// Server is the relay. It serves the three streams and /health.
type Server struct {
	cfg      Config
	log      *slog.Logger
	hub      *hub
	access   *access
	limits   *limits
	http     *http.Server
	stopping atomic.Bool
	begins   sync.WaitGroup // requests whose stream is about to start
	opened   atomic.Int64
}

// New returns a relay that does not serve yet. The configuration must be valid.
func New(cfg Config, rdb redis.UniversalClient, log *slog.Logger) (*Server, error) {
	if most := fileLimit(); most < cfg.MaxConnections {
		level := slog.LevelInfo
		if most < cfg.MaxConnections/10 { // a larger library would notice
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "fewer connections than MAX_CONNECTIONS: raise the limit of open files (ulimit -n)", "connections", most)
		cfg.MaxConnections = most
	}
	s := &Server{cfg: cfg, log: log, access: newAccess(cfg, rdb, log), limits: newLimits(cfg.MaxConnections, cfg.MaxPerUser)}
	var err error
	s.hub, err = newHub(cfg, rdb, log, s.access, s.leave)
	if err != nil {
		return nil, err
	}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		IdleTimeout:    2 * time.Minute, // longer than a load balancer or the front keeps connections
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	return s, nil
}

// Serve serves on l until ctx ends. Then it tells every client to reconnect elsewhere, closes all connections and
// returns within about four seconds.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // everything but the listener outlives ctx a little
	defer end()
	s.http.BaseContext = func(net.Listener) context.Context { return life }
	var group sync.WaitGroup
	group.Go(func() { s.hub.run(life) })
	group.Go(func() { s.access.run(life) })
	group.Go(func() { s.report(life) })
	group.Go(func() { s.trim(life) })
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.stop(context.WithoutCancel(ctx))
	end()
	group.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func (s *Server) stop(ctx context.Context) {
	s.stopping.Store(true)
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	s.hub.stop(ctx)
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut off", "error", err, "close", s.http.Close())
	}
	begun := make(chan struct{})
	go func() {
		s.begins.Wait() // streams that are about to start end right after their start
		close(begun)
	}()
	select {
	case <-begun:
	case <-ctx.Done():
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, name := range events.Topics {
		mux.HandleFunc("GET /api/v1/"+string(name)+"/stream", func(w http.ResponseWriter, r *http.Request) { s.stream(w, r, name) })
		mux.HandleFunc("/api/v1/"+string(name)+"/stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", "GET")
			writeError(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "A stream is opened with GET.")
		})
	}
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, "NotFound", "There is nothing here: the streams are /api/v1/events/stream, /api/v1/tasks/stream and /api/v1/scans/stream.")
	})
	return s.cors(mux)
}

// stream answers a request with an error, or turns its connection into a stream.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, name events.Topic) {
	began := time.Now()
	s.begins.Add(1)
	defer s.begins.Done()
	line := []any{"stream", name, "remote", r.RemoteAddr}
	at, fail := s.admit(w, r, name)
	if at.grant != nil {
		line = append(line, "tenant", at.grant.tenant, "user", at.grant.user)
	}
	if fail != nil {
		status := fail.write(w)
		s.log.Info("stream refused", append(line, "status", status, "reason", fail.cause, "ms", time.Since(began).Milliseconds())...)
		return
	}
	if r.Method == http.MethodHead { // a client checks whether it could listen
		s.leave(at)
		maps.Copy(w.Header(), head)
		w.WriteHeader(http.StatusOK)
		s.log.Info("stream not opened", append(line, "method", r.Method, "ms", time.Since(began).Milliseconds())...)
		return
	}
	extra := w.Header().Clone()
	c, err := s.takeOver(w, at)
	if err != nil {
		s.leave(at)
		s.log.Error("stream failed", append(line, "error", err)...)
		return
	}
	s.opened.Add(1)
	replayed, err := s.hub.begin(r.Context(), c, extra, lastEventID(r))
	line = append(line, "replayed", replayed, "ms", time.Since(began).Milliseconds())
	if err != nil {
		line = append(line, "error", err)
	}
	s.log.Info("stream", line...)
}

// seat is what a connection holds besides one of the process's slots.
type seat struct {
	grant *grant
	topic *topic // with it comes one of the user's slots
}

// admit takes a seat for a connection. After a failure it has given everything back; the grant, if there is one, then
// only says whose request it was.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, name events.Topic) (at seat, fail *failure) {
	if s.stopping.Load() {
		return at, unavailable("The relay is stopping; connect again.", 1, errors.New("stopping"))
	}
	if !s.limits.enter() {
		return at, unavailable("This relay has no free connection; connect again later.", 10, errors.New("process limit"))
	}
	defer func() {
		if fail != nil {
			s.leave(at)
		}
	}()
	admitted, err := s.access.authorize(r.Context(), credentialOf(r), name)
	if err != nil {
		return at, refusedBy(err)
	}
	maps.Copy(w.Header(), admitted.limit)
	at.grant = admitted.grant
	if !at.grant.permissions.Load().has(requiredPermission) {
		return at, &failure{status: http.StatusForbidden, code: "Forbidden",
			message: "The permission " + requiredPermission + " is needed.", cause: errors.New("permission")}
	}
	if !s.limits.own(at.grant.owner()) {
		return at, &failure{status: http.StatusTooManyRequests, code: "rate_limit_exceeded", retry: 10, cause: errors.New("user limit"),
			message: fmt.Sprintf("A user may have %d streams open: close one first.", s.cfg.MaxPerUser)}
	}
	at.topic = s.hub.acquire(at.grant.tenant, name)
	ready := time.NewTimer(readyTimeout)
	defer ready.Stop()
	select {
	case <-at.topic.ready:
		return at, nil
	case <-ready.C:
		err = errors.New("no subscription to Redis")
	case <-r.Context().Done():
		err = r.Context().Err()
	}
	return at, unavailable("Events cannot be read at the moment; connect again later.", 5, err)
}

// leave gives back what admit has taken. Shards call it, too.
func (s *Server) leave(at seat) {
	if at.topic != nil {
		at.topic.listeners.Add(-1)
		s.limits.disown(at.grant.owner())
	}
	if at.grant != nil {
		s.access.release(at.grant)
	}
	s.limits.leave()
}

// takeOver hijacks the socket from the HTTP server.
func (s *Server) takeOver(w http.ResponseWriter, at seat) (*connection, error) {
	socket, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeError(w, http.StatusHTTPVersionNotSupported, "BadRequest", "A stream needs HTTP/1.1.")
		return nil, fmt.Errorf("take over the connection: %w", err)
	}
	shard := s.hub.shards[s.hub.next.Add(1)%uint32(len(s.hub.shards))]
	c, err := newConnection(socket, shard, at)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return c, nil
}

// lastEventID returns the header, which clients send by themselves, or the query parameter, for clients that cannot set
// it.
func lastEventID(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	q := r.URL.Query()
	return cmp.Or(q.Get("lastEventId"), q.Get("last_event_id"))
}
