package scanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longbox/longbox/shared/domain/analysis"
)

// defaultTimeout is the time limit for the analysis of one file.
const defaultTimeout = time.Minute

// grace is how long a timed-out read may take to stop.
const grace = 2 * time.Second

var errTimeout = errors.New("the time to read the file is up")

// readOne reads a book's file within the time limit. A read that does not stop in time is abandoned: its own limits end
// it, and its result is ignored.
func (s *Scanner) readOne(ctx context.Context, b bookRow) (analyzed, error) {
	limit := cmp.Or(s.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	type outcome struct {
		analyzed
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		a, err := s.readFile(ctx, b)
		done <- outcome{a, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		select {
		case o = <-done:
		case <-time.After(grace):
			o.err = ctx.Err()
		}
	}
	if o.err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return analyzed{bookRow: b, problem: &analysis.Problem{Type: "timeout", Err: o.err,
			Message: fmt.Sprintf("reading the file took longer than %s (ANALYSIS_TIMEOUT); it is skipped until it changes or is retried", limit)}}, nil
	}
	return o.analyzed, o.err
}
