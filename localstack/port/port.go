// Package port finds free TCP ports on the loopback interface.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range lies below the one from which Linux takes ports of outgoing connections (32768 and up), so that a port
// found free stays free until the process it is meant for listens on it.
const (
	lowest  = 21000
	highest = 31999
)

// most is the largest number of ports Free gives at once.
const most = 1000

// Free returns n (up to Most) different ports that nothing listens on.
func Free(n int) ([]int, error) {
	if n > most {
		return nil, fmt.Errorf("asked for %d free ports, at most %d are given", n, most)
	}
	ports := make([]int, 0, n)
	for tries := 0; len(ports) < n; tries++ {
		if tries == 20*n {
			return nil, fmt.Errorf("found only %d of %d free ports between %d and %d", len(ports), n, lowest, highest)
		}
		p := lowest + rand.IntN(highest-lowest+1)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			continue
		}
		defer l.Close() // Held until all are found, so that none is found twice.
		ports = append(ports, p)
	}
	return ports, nil
}
