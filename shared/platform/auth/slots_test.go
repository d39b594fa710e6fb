package auth

import (
	"testing"
	"testing/synctest"
)

// Four passwords are hashed at once, the next one waits: each takes 19 MiB. Not parallel: others hash, too.
func TestHashesWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := slots
		defer func() { slots = before }()
		slots = make(chan struct{}, cap(before)) // the test can wait for channels of its own only
		for range 4 {
			slots <- struct{}{}
		}
		hashed := false
		go func() { HashPassword("a password"); hashed = true }()
		if synctest.Wait(); hashed {
			t.Error("a fifth password was hashed at once")
		}
		<-slots
		if synctest.Wait(); !hashed || len(slots) != 3 {
			t.Errorf("after one of four: hashed %v, %d at work", hashed, len(slots))
		}
	})
}
