package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

func TestLogLevel(t *testing.T) {
	for level, wrong := range map[string]bool{"debug": false, "WARN": false, "": false, "loud": true} {
		t.Setenv("LOG_LEVEL", level)
		err := SetupLog()
		if err != nil != wrong || wrong && !strings.Contains(err.Error(), "LOG_LEVEL") {
			t.Errorf("%q: %v", level, err)
		}
	}
}

// What a program has opened is closed with it, and when it cannot be made.
func TestPoolsAreClosed(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	c := Config{Database: db.Config{URL: d.AppURL, MaxConns: 2, Timeout: time.Minute}, Blob: testkit.StartS3(t, "books").Config, RedisURL: testkit.RedisURL(t)}
	failure := errors.New("no such thing")
	for _, want := range []error{nil, failure} {
		var opened []*db.DB
		_, base, err := Wire(c, func(b *Base) (int, error) {
			system, err := b.OpenSystem(c.Database, d.SystemURL, 2)
			if err != nil {
				t.Fatal(err)
			}
			opened = []*db.DB{b.Database, system}
			for _, pool := range opened {
				if err := pool.Pool().Ping(t.Context()); err != nil {
					t.Error(err)
				}
			}
			return 0, want
		})
		if !errors.Is(err, want) || (base == nil) != (want != nil) {
			t.Fatalf("wired: %v, %v", base, err)
		}
		if base != nil {
			base.Close()
		}
		for i, pool := range opened {
			if err := pool.Pool().Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("%v: pool %d is open: %v", want, i, err)
			}
		}
	}
}
