package testkit

import (
	"fmt"
	"os"
	"testing"
)

// A server that outlives the test programs may hold a database that one with this number has left. Not parallel: no
// other test may take the name.
func TestDatabaseThatWasLeft(t *testing.T) {
	Superuser(t)
	admin(t, fmt.Sprintf("create database t%d_%d", os.Getpid(), databases.Load()+1))
	d := DB(t)
	d.Tenant(t, "one")
}
