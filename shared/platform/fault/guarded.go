package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic is in the chain of an error that was a panic.
var ErrPanic = errors.New("panic")

// Guarded wraps work for its own goroutine, where a panic would end the whole process. The panic becomes an error of
// this work.
func Guarded[T any](work func() (T, error)) func() (T, error) {
	return func() (out T, err error) {
		defer func() {
			if p := recover(); p != nil {
				var none T
				out, err = none, fmt.Errorf("%w: %v\n%s", ErrPanic, p, debug.Stack())
			}
		}()
		return work()
	}
}
