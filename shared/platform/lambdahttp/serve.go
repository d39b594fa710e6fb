package lambdahttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"golang.org/x/sync/errgroup"
)

// InLambda reports whether the program runs as a Lambda function.
func InLambda() bool { return os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" }

// Serve handles gateway events in Lambda, otherwise requests at LISTEN_ADDR until SIGTERM. after may be nil.
func Serve(handler http.Handler, after After) error {
	if InLambda() {
		lambda.Start(answers(handler, after))
		return nil
	}
	return Listen(handler)
}

// Stream is Serve for streamed responses: function URL events in Lambda.
func Stream(handler http.Handler, after After) error {
	if InLambda() {
		lambda.Start(streams(handler, after))
		return nil
	}
	return Listen(handler)
}

// Listen serves requests at LISTEN_ADDR (default 127.0.0.1:8081) until SIGTERM or SIGINT, then finishes the running
// ones.
func Listen(handler http.Handler) error {
	return Beside(handler, func(ctx context.Context) error { <-ctx.Done(); return nil })
}

// Beside runs work while it serves requests like Listen. When either ends, it ends the other.
func Beside(handler http.Handler, work func(ctx context.Context) error) error {
	addr := os.Getenv("LISTEN_ADDR")
	if addr == "" {
		addr = "127.0.0.1:8081"
	}
	l, err := listen(addr)
	if err != nil {
		return fmt.Errorf("LISTEN_ADDR %s: %w", addr, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	srv := server(handler)
	var g errgroup.Group
	g.Go(func() error {
		defer stop()
		slog.Info("listening", "addr", l.Addr().String())
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return shutdown(srv, 10*time.Second)
	})
	g.Go(func() error {
		defer stop()
		return work(ctx)
	})
	return g.Wait()
}

// shutdown stops srv when all responses are sent. After grace it cuts off running ones, such as downloads.
func shutdown(srv *http.Server, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		slog.Warn("cut off requests that were still in progress", "after", grace.String())
		return srv.Close()
	}
	return err
}

// server limits the time for receiving a request including its body: the server waits for it even before an error
// response. Responses have no time limit.
func server(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
}

// Main runs a program and reports its failure with one line: a log line in Lambda, else a line for a person.
func Main(name string, run func() error) {
	err := run()
	if err == nil {
		return
	}
	if InLambda() {
		slog.Error(name+" ended", "error", err)
	} else {
		fmt.Fprintf(os.Stderr, "longbox %s: %v\n", name, err)
	}
	os.Exit(1)
}
