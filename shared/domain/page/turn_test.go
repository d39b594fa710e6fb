package page

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := make(turns, 2)
		began := make(chan int, 4)
		gives := make([]func(), 4)
		for n := range gives {
			go func() {
				give, err := all.take(t.Context())
				if err != nil {
					t.Error(err)
				}
				gives[n] = give
				began <- n
			}()
			synctest.Wait()
		}
		order := func() (out []int) {
			synctest.Wait()
			for len(began) > 0 {
				out = append(out, <-began)
			}
			return out
		}
		if got := order(); !slices.Equal(got, []int{0, 1}) {
			t.Fatalf("the turns went to %v, not to the first two", got)
		}
		gives[1]()
		gives[1]() // a second release has no effect
		if got := order(); !slices.Equal(got, []int{2}) {
			t.Fatalf("the turn that was given went to %v, not to the third", got)
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := all.take(left); !errors.Is(err, context.Canceled) {
			t.Errorf("who left is told %v", err)
		}
		time.Sleep(turnLasts) // on the test's fake clock
		if got := order(); !slices.Equal(got, []int{3}) {
			t.Errorf("turns that last too long kept the last from beginning: %v began", got)
		}
		for _, give := range gives {
			give()
		}
		if len(all) != 0 {
			t.Errorf("%d turns were never given back", len(all))
		}
	})
}
