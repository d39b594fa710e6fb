// Package port finds free TCP ports on the loopback interface.
package port

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ranges are below Linux's range for outgoing connections (32768 and up), so that a free port stays free until its
// process listens. Free uses the first part, Own uses blocks of the rest.
const (
	lowest  = 21000
	highest = 23999
	blocks  = 125
	block   = 64 // ports; the first one is the lock
)

// most limits the ports of one call of Free.
const most = 1000

// Free returns n (up to most) different free ports.
func Free(n int) ([]int, error) {
	if n > most {
		return nil, fmt.Errorf("asked for %d free ports, at most %d are available", n, most)
	}
	ports := make([]int, 0, n)
	for tries := 0; len(ports) < n; tries++ {
		if tries == 20*n {
			return nil, fmt.Errorf("found only %d of %d free ports between %d and %d", len(ports), n, lowest, highest)
		}
		p := lowest + rand.IntN(highest-lowest+1)
		l, err := listen(p)
		if err != nil {
			continue
		}
		defer l.Close() // Held until all are found, so that none is found twice.
		ports = append(ports, p)
	}
	return ports, nil
}

// Own returns n (up to 63) different free ports. Until hold is closed, no other Longbox gets any of them: two that
// start at the same moment would both find the ports free.
func Own(n int) (ports []int, hold io.Closer, err error) {
	if n >= block {
		return nil, nil, fmt.Errorf("asked for %d free ports, at most %d are available", n, block-1)
	}
	for range 10 * blocks {
		first := highest + 1 + rand.IntN(blocks)*block
		guard, err := listen(first)
		if err != nil {
			continue
		}
		if ports = free(first+1, first+block-1, n); len(ports) == n {
			return ports, guard, nil
		}
		if err := guard.Close(); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, errors.New("found no block of free ports from " + strconv.Itoa(highest+1) + " to " + strconv.Itoa(highest+blocks*block))
}

// free returns the first n free ports of a range, or as many as there are.
func free(from, to, n int) (ports []int) {
	for p := from; p <= to && len(ports) < n; p++ {
		if l, err := listen(p); err == nil {
			l.Close()
			ports = append(ports, p)
		}
	}
	return ports
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
