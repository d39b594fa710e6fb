package fault

import (
	"fmt"
	"runtime/debug"
)

// Guarded wraps work for its own goroutine, where a panic would end the whole process. The panic becomes an error of
// this work.
func Guarded(work func() (any, error)) func() (any, error) {
	return func() (out any, err error) {
		defer func() {
			if p := recover(); p != nil {
				out, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		return work()
	}
}
