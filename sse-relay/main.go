// Command sse-relay streams events to clients; see package relay.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/redisconn"
	"github.com/longbox/longbox/sse-relay/relay"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sse-relay:", err)
		os.Exit(1)
	}
}

func run() error {
	cfg, err := environ.Parse[relay.Config]()
	if err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.LogLevel}))
	redisconn.LogTo(log)
	rdb, err := cfg.RedisClient()
	if err != nil {
		return err
	}
	defer rdb.Close()
	server, err := relay.New(cfg, rdb, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.ListenAddr)
	if err != nil {
		return fmt.Errorf("LISTEN_ADDR: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.Info("ready", "address", listener.Addr().String())
	err = server.Serve(ctx, listener)
	log.Info("stopped")
	return err
}
