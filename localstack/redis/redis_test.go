package redis

import (
	"testing"

	"github.com/longbox/longbox/shared/platform/redisconn"
)

func TestURL(t *testing.T) {
	t.Parallel()
	s := &Server{port: 6380, password: "secret"}
	for address, socket := range map[string]string{"127.0.0.1:6380": "", `/data/é "x" & ?/redis.sock`: `/data/é "x" & ?/redis.sock`} {
		s.socket = socket
		got, err := redisconn.Options(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		if got.Addr != address || got.Password != "secret" || got.DB != 0 {
			t.Errorf("socket %q: read as %q, password %q", socket, got.Addr, got.Password)
		}
	}
}
