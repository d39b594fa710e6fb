package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The test binary is also every program of the system, selected by its file name. The functions are small stand-ins
// that report what they were given. Everything around them is real.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "localstack":
		main()
	case "migrate":
		fail(fakeMigrate())
	case "api", "media", "worker", "scheduler", "sse-relay", "plugin":
		fail(fakeFunction(name))
	default:
		os.Exit(m.Run())
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, `{"level":"ERROR","msg":%q}`+"\n", err.Error())
		os.Exit(1)
	}
}

// broken reports whether a stand-in must fail: then a file named after it is beside the programs.
func broken(name string) bool {
	self, err := os.Executable()
	if err != nil {
		return true
	}
	_, err = os.Stat(filepath.Join(filepath.Dir(self), name+".broken"))
	return err == nil
}

func fakeMigrate() error {
	ctx := context.Background()
	if broken("migrate") {
		return errors.New("schema version 7 is from the future")
	}
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_OWNER_URL"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, `create table if not exists starts (admin text);
		grant select, insert on starts to longbox_app, longbox_system;
		create extension if not exists pg_trgm;
		create collation if not exists natural_order (provider = icu, locale = 'und-u-kn-true')`)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, `{"level":"WARN","msg":"a library is in no folder"}`)
	_, err = conn.Exec(ctx, "insert into starts values ($1)", os.Getenv("LONGBOX_ADMIN"))
	return err
}

// told is the response of a stand-in to any request.
type told struct {
	Name   string
	PID    int
	UID    int
	Path   string
	Header http.Header
	Env    map[string]string
}

// names are the variables that localstack sets for the functions.
var names = []string{"LISTEN_ADDR", "DATABASE_URL", "DATABASE_SYSTEM_URL", "REDIS_URL", "MEDIA_S3_ENDPOINT",
	"LIBRARY_S3_ENDPOINT", "MEDIA_BUCKET", "S3_PATH_STYLE", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	"AUTH_SIGNING_KEY", "PUBLIC_URL", "TRUSTED_PROXIES", "SINGLE_TENANT", "LIBRARY_ROOTS", "API_URL", "PDF_CACHE_DIR",
	"PLUGIN_URL", "PLUGIN_TOKEN", "PLUGIN_COMMANDS", "CREDENTIALS_KEY"}

// kept are variables that must not reach a function.
var kept = []string{"DATABASE_OWNER_URL", "DATABASE_ADMIN_URL", "LONGBOX_ADMIN", "AWS_SESSION_TOKEN", "PGHOST", "PLUGIN_FUNCTION", "ORIGIN_SECRET",
	"DELIVERY"}

func fakeFunction(name string) error {
	if broken(name) {
		return errors.New("out of tea")
	}
	env := map[string]string{}
	for _, n := range append(names, kept...) {
		if v, ok := os.LookupEnv(n); ok {
			env[n] = v
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/setup/status", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"setupRequired":true}`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(json.NewEncoder(w).Encode(told{name, os.Getpid(), os.Geteuid(), r.URL.Path, r.Header, env}))
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: os.Getenv("LISTEN_ADDR"), Handler: mux}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
