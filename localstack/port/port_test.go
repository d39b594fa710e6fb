package port

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePortsAreDifferentAndFree(t *testing.T) {
	t.Parallel()
	ports, err := Free(30)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] {
			t.Errorf("port %d given twice", p)
		}
		seen[p] = true
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			t.Errorf("port %d is not free: %v", p, err)
			continue
		}
		defer l.Close()
	}
	if len(seen) != 30 {
		t.Errorf("got %d ports, want 30", len(seen))
	}
}

func TestFreeRefusesTooMany(t *testing.T) {
	t.Parallel()
	if _, err := Free(most + 1); err == nil {
		t.Error("no error for more ports than the limit")
	}
}
