package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longbox/longbox/localstack/account"
)

// The test binary is also the child: with CHILD set, it plays the part of that name.
func TestMain(m *testing.M) {
	switch part := os.Getenv("CHILD"); part {
	case "":
		os.Exit(m.Run())
	case "polite": // Answers, and prints a last line when it is asked to end.
		serve()
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Printf("pid %d\n", os.Getpid())
		<-c
		fmt.Println("goodbye")
	case "draining": // Answers. Asked to end, it stops answering, and ends when the file at HOLD is gone.
		l, err := net.Listen("tcp", os.Getenv("LISTEN_ADDR"))
		if err != nil {
			panic(err)
		}
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, os.Getpid()) })}
		server.SetKeepAlivesEnabled(false)
		go func() { _ = server.Serve(l) }()
		<-c
		l.Close()
		if err := poll(context.Background(), func(context.Context) error {
			if _, err := os.Stat(os.Getenv("HOLD")); err == nil {
				return errors.New("held")
			}
			return nil
		}); err != nil {
			panic(err)
		}
	case "stubborn": // Answers, and does not end.
		signal.Ignore(syscall.SIGTERM)
		serve()
		select {}
	case "dying": // Ends before it answers.
		fmt.Fprintln(os.Stderr, "first line")
		fmt.Fprintln(os.Stderr, `{"level":"ERROR","msg":"no database","port":5432}`)
		os.Exit(3)
	case "full", "short", "small": // A database without room on disk or in shared memory, or its client.
		fmt.Fprintln(os.Stderr, map[string]string{"full": "could not write to file: No space left on device",
			"short": `ERROR: could not extend file "base/1/2": wrote only 4096 of 8192 bytes at block 3 (SQLSTATE 53100)`,
			"small": "could not resize shared memory segment: No space left on device"}[part])
		fmt.Fprintln(os.Stderr, "shutting down")
		os.Exit(1)
	case "silent": // Runs, but never answers.
		select {}
	case "loud": // Writes more than a pipe holds, of which one line is for the console.
		fmt.Println(`{"level":"WARN","msg":"look"}`)
		fmt.Print(strings.Repeat(`{"level":"INFO","msg":"never mind"}`+"\n", 30_000))
	case "once":
		fmt.Println("done")
	case "supervisor": // Starts a polite child and waits to be killed.
		supervisorPart()
	default:
		panic("unknown part " + part)
	}
}

func serve() {
	address := os.Getenv("LISTEN_ADDR")
	if address == "" {
		return
	}
	go func() {
		err := http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, os.Getpid())
		}))
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}()
}

func supervisorPart() {
	s, err := New(context.Background(), os.Getenv("DIR"), NewConsole(io.Discard))
	if err != nil {
		panic(err)
	}
	if _, err := s.Start(context.Background(), child("child", "polite", os.Getenv("ADDRESS"))); err != nil {
		panic(err)
	}
	fmt.Println("started")
	select {}
}

// child returns the specification of this binary playing a part.
func child(name, part, address string) Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	a := account.Account{UID: os.Geteuid(), GID: os.Getegid()}
	spec := Spec{
		Name: name, Path: self, Account: a, Stop: syscall.SIGTERM, Grace: 20 * time.Second, Orphan: syscall.SIGKILL,
		Env:      []string{"CHILD=" + part, "LISTEN_ADDR=" + address, "GORACE=" + os.Getenv("GORACE")},
		Patience: 20 * time.Second,
	}
	if address != "" {
		spec.Ready = Healthy("http://" + address)
	}
	return spec
}

// logged waits until a log file contains text.
func logged(t *testing.T, path, text string) {
	t.Helper()
	eventually(t, func() error {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.Contains(string(raw), text) {
			return fmt.Errorf("%s does not hold %q: %s", path, text, raw)
		}
		return nil
	})
}

// eventually calls f until it succeeds, for at most 20 s.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := poll(ctx, func(context.Context) error { return f() }); err != nil {
		t.Fatal(err)
	}
}
