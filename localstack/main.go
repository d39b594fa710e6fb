// Command localstack runs all of Longbox on one machine, in the foreground: a private PostgreSQL and Redis, S3 gateways
// for the media bucket and the library folders, and every function, behind one port. Start it with make run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/longbox/longbox/localstack/stack"
	"github.com/longbox/longbox/localstack/supervise"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Longbox: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

func run() error {
	// Writing to a closed terminal must not kill the system during its shutdown.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if os.Geteuid() == 0 { // Its children are of another user, who must be able to enter DATA_DIR. Secrets have modes of their own.
		syscall.Umask(0o022)
	}
	ends := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // It is under nohup.
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), ends...)
	defer cancel()
	if err := stack.ForgetServers(); err != nil {
		return err
	}
	config, err := stack.Load()
	if err != nil {
		return err
	}
	console := supervise.NewConsole(os.Stdout)
	defer console.Flush()
	s, err := stack.Start(ctx, config, console)
	if err != nil {
		if ctx.Err() != nil {
			console.Say("Longbox: stopped before it was ready")
			return nil
		}
		return err
	}
	if err := announce(ctx, s, config, console); err != nil {
		console.Say("Longbox: %v", err)
	}
	<-ctx.Done()
	console.Say("Longbox: stopping")
	if err := s.Stop(); err != nil {
		return err
	}
	console.Say("Longbox: stopped; all data is in %s", s.DataDir())
	return nil
}

// announce prints the line that says that Longbox is ready, and the first steps.
func announce(ctx context.Context, s *stack.Stack, config stack.Config, console *supervise.Console) error {
	for _, r := range s.Roots() {
		console.Say("Longbox: serving %s (read-only)", r.Folder)
	}
	if config.Web != "" {
		console.Say("Longbox: serving the web application in %s", config.Web)
	}
	needed, err := s.NeedsAdmin(ctx)
	console.Say("Longbox is ready: %s", s.URL())
	switch {
	case err != nil:
		return fmt.Errorf("cannot find out whether an administrator exists: %w", err)
	case needed:
		console.Say(`Create the administrator: curl -H 'Content-Type: application/json' -d '{"username":"admin","email":"admin@example.org","password":"<your password>"}' %s/api/v1/setup/initialize`, s.URL())
	case config.Admin != "":
		announceAdmin(ctx, s, console)
	}
	return nil
}

// announceAdmin prints the result of LONGBOX_ADMIN. If it is unknown, Longbox runs anyway.
func announceAdmin(ctx context.Context, s *stack.Stack, console *supervise.Console) {
	can, err := s.AdminSignsIn(ctx)
	switch {
	case err != nil:
		console.Say("Longbox cannot find out whether the administrator of LONGBOX_ADMIN can log in: %v", err)
	case can:
		console.Say("The administrator of LONGBOX_ADMIN can log in")
	default:
		console.Say("LONGBOX_ADMIN only creates the first user. Users already exist, so it changed nothing, and you cannot log in with it. Log in as before, and remove the setting")
	}
}
