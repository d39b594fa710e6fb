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

// A port that was given to one caller is not given to another, even if nothing listens on it yet.
func TestOwnPortsAreGivenOnce(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range blocks / 2 {
		ports, hold, err := Own(12)
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Close()
		if len(ports) != 12 {
			t.Fatalf("got %d ports, want 12", len(ports))
		}
		for _, p := range ports {
			if seen[p] || p <= highest || p > 32767 {
				t.Errorf("port %d given twice, or out of its range", p)
			}
			seen[p] = true
		}
	}
	if _, _, err := Own(block); err == nil {
		t.Error("no error for more ports than a block has")
	}
}
