package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/gateway"
	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/localstack/port"
	"github.com/longbox/longbox/localstack/postgres"
	"github.com/longbox/longbox/localstack/redis"
	"github.com/longbox/longbox/localstack/secret"
	"github.com/longbox/longbox/localstack/stack"
	"github.com/longbox/longbox/localstack/supervise"
	"github.com/longbox/longbox/shared/platform/auth"
)

// system is the system of make run without the functions. Each benchmark starts those that it needs.
type system struct {
	dir, root, programs string // Folder of this run; the repository; the binaries.
	books               string // The library root.
	roots               []library.Root
	bucket              string // The bucket that serves it.

	account    account.Account
	secrets    secret.Set
	supervisor *supervise.Supervisor
	postgres   *postgres.Cluster
	redis      *redis.Server
	media      *gateway.Gateway
	library    *gateway.Gateway
	servers    []*supervise.Process

	admin  *pgx.Conn // As superuser.
	tenant uuid.UUID // The default tenant,
	user   uuid.UUID // its administrator,
	token  string    // and their access token.
}

const adminName, adminPassword = "bench", "B3nch-password"

func newSystem(ctx context.Context) (s *system, err error) {
	s = &system{}
	if s.root, err = repository(ctx); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "longbox-bench-"); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{s.prepare, s.startServers, s.migrate} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *system) prepare(ctx context.Context) (err error) {
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	s.programs, s.books = filepath.Join(s.dir, "programs"), filepath.Join(s.dir, "books")
	if err := os.Mkdir(s.books, 0o755); err != nil {
		return err
	}
	if err := s.build(ctx, "migrate"); err != nil {
		return err
	}
	tool, err := gateway.Program(filepath.Join(s.root, ".tools", "bin"))
	if err != nil {
		return err
	}
	data := s.data()
	if err := os.Mkdir(data, 0o755); err != nil {
		return err
	}
	if s.account, err = account.Choose(data, s.programs, filepath.Dir(tool)); err != nil {
		return err
	}
	if s.secrets, err = secret.Load(data); err != nil {
		return err
	}
	if err := s.account.Folder(s.scratch()); err != nil {
		return err
	}
	console := supervise.NewConsole(os.Stderr)
	if s.supervisor, err = supervise.New(ctx, data, console); err != nil {
		return err
	}
	ports, err := port.Free(4)
	if err != nil {
		return err
	}
	if s.postgres, err = postgres.New(data, s.scratch(), ports[0], s.account, s.secrets); err != nil {
		return err
	}
	if s.redis, err = redis.New(data, ports[1], s.secrets.Redis, s.account); err != nil {
		return err
	}
	if s.media, err = gateway.Media(data, tool, ports[2], s.account, s.secrets); err != nil {
		return err
	}
	if s.roots, err = library.Roots(ctx, []string{s.books}, data, console.Say); err != nil {
		return err
	}
	s.bucket = s.roots[0].Bucket
	s.library, err = gateway.Library(data, tool, ports[3], s.roots, s.account, s.secrets)
	return err
}

func (s *system) data() string    { return filepath.Join(s.dir, "data") }
func (s *system) scratch() string { return filepath.Join(s.data(), "tmp") }

func (s *system) startServers(ctx context.Context) error {
	if err := s.postgres.Init(ctx, s.supervisor); err != nil {
		return err
	}
	for _, spec := range []supervise.Spec{s.postgres.Spec(), s.redis.Spec(), s.media.Spec(), s.library.Spec()} {
		p, err := s.supervisor.Start(ctx, spec)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, p)
	}
	if err := s.postgres.Bootstrap(ctx); err != nil {
		return err
	}
	return s.media.EnsureBucket(ctx)
}

// migrate creates the schema and the first administrator, and signs a token for them.
func (s *system) migrate(ctx context.Context) (err error) {
	spec := s.spec("migrate", "", "DATABASE_OWNER_URL="+s.postgres.OwnerURL(), "LONGBOX_ADMIN="+adminName+":"+adminPassword)
	spec.Ready = nil
	if err := s.supervisor.RunOnce(ctx, spec); err != nil {
		return err
	}
	u, err := url.Parse(s.postgres.AppURL())
	if err != nil {
		return err
	}
	u.User = url.UserPassword("longbox_super", s.secrets.PostgresSuper)
	if s.admin, err = pgx.Connect(ctx, u.String()); err != nil {
		return err
	}
	if err := s.admin.QueryRow(ctx, "select tenant_id, id from account where username = $1", adminName).Scan(&s.tenant, &s.user); err != nil {
		return err
	}
	s.token, err = s.sign(s.tenant, s.user)
	return err
}

func (s *system) sign(tenant, user uuid.UUID) (string, error) {
	tokens, err := auth.NewTokens(auth.Config{SigningKey: s.secrets.AuthSigningKey, TokenLife: 24 * time.Hour})
	if err != nil {
		return "", err
	}
	return tokens.Sign(tenant, user, 1, time.Now())
}

// spec returns how to run a function, like make run but without the rate limit, which one client would exceed: requests
// only read the access generation from Redis. Figures that people compare set RATE_LIMIT and use readers.
func (s *system) spec(name, address string, more ...string) supervise.Spec {
	env := stack.Services{Postgres: s.postgres, Redis: s.redis, Media: s.media, Library: s.library, Secrets: s.secrets, Roots: s.roots,
		Scratch: s.scratch(), PublicURL: "http://127.0.0.1", API: "127.0.0.1"}.Environment()
	env = append(env, "PATH="+os.Getenv("PATH"), "TZ=UTC", "RATE_LIMIT=false", "LISTEN_ADDR="+address, stack.Processors(name), stack.Connections(name))
	return supervise.Spec{
		Name: name, Path: filepath.Join(s.programs, name), Dir: s.scratch(), Env: append(env, more...), Account: s.account, Quiet: true, Nice: stack.Nice(name),
		Stop: syscall.SIGTERM, Grace: 15 * time.Second, Orphan: syscall.SIGKILL,
		Ready: supervise.Healthy("http://" + address + "/health"), Patience: time.Minute,
	}
}

// function is a running function.
type function struct {
	*supervise.Process
	address, url string
	pid          int
}

// function starts a function. env overrides settings of make run.
func (s *system) function(ctx context.Context, name string, env ...string) (*function, error) {
	if err := s.build(ctx, name); err != nil {
		return nil, err
	}
	ports, err := port.Free(1)
	if err != nil {
		return nil, err
	}
	f := &function{address: "127.0.0.1:" + strconv.Itoa(ports[0])}
	f.url = "http://" + f.address
	if f.Process, err = s.supervisor.Start(ctx, s.spec(name, f.address, env...)); err != nil {
		return nil, err
	}
	pids, err := processes(s.data())
	f.pid = pids[name]
	return f, err
}

// close stops everything and removes the folder of the run.
func (s *system) close() error {
	if s.admin != nil {
		_ = s.admin.Close(context.Background()) // The server ends next.
	}
	for i := len(s.servers) - 1; i >= 0; i-- {
		s.servers[i].Stop()
	}
	if s.supervisor != nil {
		s.supervisor.Close()
	}
	return os.RemoveAll(s.dir)
}
