package sqs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const account = "000000000000"

// Server holds queues.
type Server struct {
	URL string // endpoint, without a trailing slash

	mu      sync.Mutex
	queues  map[string]*queue
	changed chan struct{} // closed and replaced when something may have become visible
	faults  Faults
	random  *rand.Rand
	calls   map[string]int
	done    Done
}

// Faults are probabilities between 0 and 1, per message.
type Faults struct {
	Seed      uint64
	Duplicate float64       // sent once, stored twice
	Lose      float64       // accepted, but not stored
	Delay     float64       // delayed, up to DelayMax
	DelayMax  time.Duration // of Delay
	Reorder   bool          // any visible message may be next
	Refuse    float64       // per request: answered with 503
}

// Done counts what the faults did.
type Done struct{ Lost, Duplicated, Reordered int }

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{queues: map[string]*queue{}, changed: make(chan struct{}), calls: map[string]int{}}
	s.Fault(Faults{})
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() }) // a long poll ends with its connection
	s.URL = srv.URL
	return s
}

// Fault sets the faults from now on.
func (s *Server) Fault(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.random = f, rand.New(rand.NewPCG(f.Seed, 7))
}

// Queue creates a queue and returns its URL. dead, unless "", is the name of the queue for messages received more than
// maxReceives times.
func (s *Server) Queue(name string, visibility time.Duration, dead string, maxReceives int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[name] = &queue{name: name, visibility: visibility, dead: dead, maxReceives: maxReceives}
	return s.address(name)
}

// Len counts the messages of a queue: visible ones, and hidden ones, which are held or delayed.
func (s *Server) Len(name string) (visible, hidden int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[name]; q != nil {
		return q.count(time.Now())
	}
	return 0, 0
}

// Calls counts the requests for an action such as SendMessageBatch.
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

// Done returns what the faults did since the start.
func (s *Server) Done() Done {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

func (s *Server) address(name string) string { return s.URL + "/" + account + "/" + name }

// fail is an error response of the protocol.
type fail struct {
	status  int
	code    string
	message string
}

func (f *fail) Error() string { return f.code + ": " + f.message }

func invalid(format string, args ...any) error {
	return &fail{http.StatusBadRequest, "InvalidParameterValue", fmt.Sprintf(format, args...)}
}

// ServeHTTP answers one action.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out, err := s.answer(r)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	var f *fail
	switch {
	case errors.As(err, &f):
		w.WriteHeader(f.status)
		out = map[string]string{"__type": "com.amazonaws.sqs#" + f.code, "message": f.message}
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
		out = map[string]string{"__type": "com.amazonaws.sqs#InternalError", "message": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(out) // the client may have left
}

func (s *Server) answer(r *http.Request) (any, error) {
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	switch {
	case r.Method != http.MethodPost || !ok || r.Header.Get("Content-Type") != "application/x-amz-json-1.0":
		return nil, &fail{http.StatusBadRequest, "InvalidAction", "only the JSON protocol is spoken here"}
	case !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="):
		return nil, &fail{http.StatusForbidden, "MissingAuthenticationToken", "the request is not signed"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 2<<20))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.calls[action]++
	refused := s.random.Float64() < s.faults.Refuse
	s.mu.Unlock()
	if refused {
		return nil, &fail{http.StatusServiceUnavailable, "ServiceUnavailable", "refused by the test"}
	}
	var in input
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, invalid("%v", err)
	}
	if action == "ReceiveMessage" {
		return s.receive(r.Context(), in)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	do, ok := actions[action]
	if !ok {
		return nil, &fail{http.StatusBadRequest, "InvalidAction", "this server does not know " + action}
	}
	return do(s, in)
}
