package fault

import (
	"fmt"
	"runtime/debug"
)

// Guarded is work for a goroutine of its own, in which a panic would end the process and with it everybody's requests:
// it is an error instead, of this work alone.
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
