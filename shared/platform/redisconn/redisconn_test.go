package redisconn

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	opt, err := Options("rediss://user:secret@cache.example.org:6380/3")
	if err != nil {
		t.Fatal(err)
	}
	if opt.Addr != "cache.example.org:6380" || opt.DB != 3 || opt.Username != "user" || opt.Password != "secret" || opt.TLSConfig == nil {
		t.Errorf("the URL was not read: %+v", opt)
	}
	if opt.MaxRetries != -1 || opt.DialerRetries != 1 || !opt.ContextTimeoutEnabled || opt.PoolSize < 16 {
		t.Errorf("a missing Redis would be expensive: %+v", opt)
	}
}

func TestOptionsErrors(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "localhost:6379", "http://:secret@x", "redis://:secret@host:notaport", "redis://:secret@h/notadb", "redis://:sec\x7fret@h", "redis://:secret@h?nonsense=1"} {
		_, err := Options(in)
		if err == nil {
			t.Errorf("%q: accepted", in)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error repeats the password: %v", in, err)
		}
		if !strings.Contains(err.Error(), "REDIS_URL") {
			t.Errorf("%q: the error does not name the setting: %v", in, err)
		}
	}
}

// TestNothingExtraIsSent reads what a client sends on a new connection: the protocol's handshake and the command only.
func TestNothingExtraIsSent(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	said := make(chan []string, 1)
	go func() {
		var words []string
		defer func() { said <- words }()
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for s := bufio.NewScanner(conn); s.Scan(); {
			word := strings.ToLower(s.Text())
			if word == "" || strings.ContainsAny(word[:1], "*$") {
				continue
			}
			words = append(words, word)
			switch word {
			case "hello":
				if _, err := conn.Write([]byte("%1\r\n+proto\r\n:3\r\n")); err != nil {
					return
				}
			case "ping":
				if _, err := conn.Write([]byte("+PONG\r\n")); err != nil {
					return
				}
			}
		}
	}()
	opt, err := Options("redis://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	if err := rdb.Ping(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(<-said, " "); got != "hello 3 ping" {
		t.Errorf("the client said %q", got)
	}
}
