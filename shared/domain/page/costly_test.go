package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/archive"
)

// A file that makes its reader panic fails only the request for the page, not the process.
func TestAPanicEndsOnlyItsPage(t *testing.T) {
	t.Parallel()
	s := NewServer(Server{})     // without Content, reading panics
	for range costlyAtOnce + 1 { // no slot is leaked
		if _, err := s.extract(t.Context(), &Index{}, 1, archive.Entry{Length: 1}); err == nil || !strings.HasPrefix(err.Error(), "panic: ") {
			t.Errorf("%v, want that it panicked", err)
		}
	}
}

// A tenant that requests many pages at once leaves the next free slot to others.
func TestCostlyPagesByTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newCostly()
		loud, quiet := uuid.New(), uuid.New()
		began := make(chan string, 10)
		gives := make(chan func(), 10)
		ask := func(name string, tenant uuid.UUID) {
			give, err := d.slots.take(t.Context(), tenant, uuid.Nil, 1)
			if err != nil {
				t.Error(err)
				return
			}
			began <- name
			gives <- give
		}
		for range costlyAtOnce + 3 {
			go ask("loud", loud)
		}
		synctest.Wait()
		go ask("quiet", quiet)
		synctest.Wait()
		(<-gives)()
		synctest.Wait()
		left, leave := context.WithCancel(t.Context())
		leave()
		for _, tenant := range []uuid.UUID{loud, quiet} {
			if _, err := d.slots.take(left, tenant, uuid.Nil, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("who left is told %v", err)
			}
		}
		for range costlyAtOnce + 3 {
			(<-gives)()
		}
		close(began)
		var order []string
		for name := range began {
			order = append(order, name)
		}
		if at := slices.Index(order, "quiet"); at != costlyAtOnce || len(order) != costlyAtOnce+4 {
			t.Errorf("they began as %v", order)
		}
		if !d.slots.all.TryAcquire(costlyAtOnce) {
			t.Error("a place was never given back")
		}
	})
}
