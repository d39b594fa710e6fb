// Package stack starts and stops the whole system on one machine: servers, gateways, schema, functions and the front,
// in the order of their dependencies.
package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/localstack/account"
	"github.com/longbox/longbox/localstack/front"
	"github.com/longbox/longbox/localstack/gateway"
	"github.com/longbox/longbox/localstack/library"
	"github.com/longbox/longbox/localstack/port"
	"github.com/longbox/longbox/localstack/postgres"
	"github.com/longbox/longbox/localstack/redis"
	"github.com/longbox/longbox/localstack/sample"
	"github.com/longbox/longbox/localstack/secret"
	"github.com/longbox/longbox/localstack/supervise"
	"github.com/longbox/longbox/shared/domain/tenant"
)

// Stack is one running system.
type Stack struct {
	config   Config
	console  *supervise.Console
	lock     *os.File
	hold     io.Closer // reserves the ports
	account  account.Account
	secrets  secret.Set
	token    string // Of callers of plugins; new at every start.
	roots    []library.Root
	scratch  string // Folder of the account for temporary files.
	compiled string // A persistent folder for code that programs compile at run time and share.
	ports    map[string]int

	supervisor *supervise.Supervisor
	front      *front.Front
	web        *front.Web
	postgres   *postgres.Cluster
	redis      *redis.Server
	media      *gateway.Gateway
	library    *gateway.Gateway

	running running
}

// Start starts everything and returns when all of it is ready. If a step fails, it stops what was started. ctx is for
// the whole life of the system.
func Start(ctx context.Context, c Config, console *supervise.Console) (*Stack, error) {
	s := &Stack{config: c, console: console, token: rand.Text()}
	for _, step := range []func(context.Context) error{s.prepare, s.startServers, s.migrate, s.startFunctions, s.writeOperator} {
		err := step(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(withRoom(err, s.config.DataDir, free), s.Stop())
		}
	}
	if err := s.library.Confined(); err != nil {
		console.Say("Longbox: symbolic links in library folders can lead outside them, so do not serve folders that other users may write to: %v", err)
	} else {
		go s.library.Follow(ctx)
	}
	if s.account.Switch {
		go s.checkRoots(ctx)
	}
	go library.SayLinks(s.roots, console.Say)
	s.front.Open(front.Targets{API: s.address(api), Media: s.address(media), Relay: s.address(relay), Web: s.web}, s.config.TrustedProxies, console.Say)
	return s, nil
}

// prepare does everything that needs no server. It starts with checks of the user's settings.
func (s *Stack) prepare(ctx context.Context) (err error) {
	if err := s.checkPrograms(); err != nil {
		return err
	}
	if ignored := slices.DeleteFunc(slices.Clone(ofCDN), func(name string) bool { return os.Getenv(name) == "" }); len(ignored) > 0 {
		s.console.Say("Longbox: make run has no CDN and ignores %s", strings.Join(ignored, ", "))
	}
	if s.lock, err = lock(s.config.DataDir); err != nil {
		return err
	}
	if s.config.DataDir, err = filepath.EvalSymlinks(s.config.DataDir); err != nil {
		return fmt.Errorf("DATA_DIR: %w", err)
	}
	if s.front, err = front.Listen(s.config.Bind, s.config.Port); err != nil {
		return err
	}
	s.sayMailLinks(os.Getenv("SMTP_HOST"))
	if s.config.Web != "" {
		if s.web, err = front.NewWeb(s.config.Web, s.config.Docs); err != nil {
			return err
		}
	}
	if s.roots, err = s.libraryRoots(ctx); err != nil {
		return err
	}
	tools, err := gateway.Program(s.config.Tools)
	if err != nil {
		return err
	}
	if s.account, err = account.Choose(s.config.DataDir, s.config.Programs, filepath.Dir(tools)); err != nil {
		return err
	}
	if s.account.Closed != "" {
		s.console.Say("Longbox: user id %d, as which every program runs, cannot enter %s, so every program may read all files of this machine: "+
			"move the clone and DATA_DIR elsewhere, or start as a user who may read the library", s.account.UID, s.account.Closed)
	}
	if s.secrets, err = secret.Load(s.config.DataDir); err != nil {
		return err
	}
	s.scratch, s.compiled = filepath.Join(s.config.DataDir, "tmp"), filepath.Join(s.config.DataDir, "pdfium")
	for _, folder := range []string{s.scratch, s.compiled, s.plugins()} {
		if err := s.account.Folder(folder); err != nil {
			return err
		}
	}
	if err := forgetCompiled(s.compiled, time.Now().Add(-compiledLife)); err != nil {
		s.console.Say("Longbox: cannot remove old compiled code: %v", err)
	}
	if s.supervisor, err = supervise.New(ctx, s.config.DataDir, s.console); err != nil {
		return err
	}
	return s.describe(tools)
}

// describe chooses the ports and describes the servers.
func (s *Stack) describe(gatewayProgram string) (err error) {
	names := append([]string{"postgres", "redis", "media-s3", "library-s3"}, functions...)
	ports, hold, err := port.Own(len(names))
	if err != nil {
		return err
	}
	s.ports, s.hold = map[string]int{}, hold
	for i, name := range names {
		s.ports[name] = ports[i]
	}
	if s.postgres, err = postgres.New(s.config.DataDir, s.scratch, s.ports["postgres"], s.account, s.secrets); err != nil {
		return err
	}
	if s.redis, err = redis.New(s.config.DataDir, s.ports["redis"], s.secrets.Redis, s.account); err != nil {
		return err
	}
	if s.media, err = gateway.Media(s.config.DataDir, gatewayProgram, s.ports["media-s3"], s.account, s.secrets); err != nil {
		return err
	}
	s.library, err = gateway.Library(s.config.DataDir, gatewayProgram, s.ports["library-s3"], s.roots, s.account, s.secrets)
	return err
}

// libraryRoots checks the folders of LIBRARY. Without any it creates the sample library.
func (s *Stack) libraryRoots(ctx context.Context) ([]library.Root, error) {
	roots, err := library.Roots(ctx, s.config.Library, s.config.DataDir, s.console.Say)
	if err != nil || len(roots) > 0 {
		return roots, err
	}
	folder := filepath.Join(s.config.DataDir, "sample")
	if _, err := os.Stat(folder); err != nil {
		s.console.Say("Longbox: creating a small sample library (set LIBRARY=/folder:/folder2 to serve your own folders)")
	}
	if err := sample.Write(folder); err != nil {
		return nil, err
	}
	return library.Roots(ctx, []string{folder}, s.config.DataDir, s.console.Say)
}

// checkRoots names the folders that the gateway's user may not read. The start has checked them as root, but a network
// or FUSE disk may allow root more than a user with CAP_DAC_READ_SEARCH.
func (s *Stack) checkRoots(ctx context.Context) {
	for _, r := range s.roots {
		if err := s.library.List(ctx, r); err != nil && ctx.Err() == nil {
			s.console.Say("Longbox: library folder %s cannot be served: user id %d, as which the gateway runs, cannot list it (library-s3.log has the reason): "+
				"open its disk to this user, or start Longbox as a user who may read it", r.Folder, s.account.UID)
		}
	}
}

// startServers starts the database, Redis and both gateways concurrently.
func (s *Stack) startServers(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if !s.postgres.Exists() {
			s.console.Say("Longbox: creating the database in %s", filepath.Join(s.config.DataDir, "postgres"))
			if err := s.postgres.Init(ctx, s.supervisor); err != nil {
				return err
			}
		}
		if err := s.postgres.ClearStale(); err != nil {
			return err
		}
		if err := s.start(ctx, database, s.postgres.Spec()); err != nil {
			return err
		}
		return s.postgres.Bootstrap(ctx)
	})
	group.Go(func() error { return s.startRedis(ctx) })
	group.Go(func() error {
		if err := s.start(ctx, storage, s.media.Spec()); err != nil {
			return err
		}
		return s.media.EnsureBucket(ctx)
	})
	group.Go(func() error { return s.start(ctx, storage, s.library.Spec()) })
	return group.Wait()
}

// startRedis starts Redis with its data. If only the data prevents the start, it starts it empty: a power loss leaves
// zeros at the end of its file, which Redis refuses, and its data is not worth an unreadable library.
func (s *Stack) startRedis(ctx context.Context) error {
	err := s.start(ctx, cache, s.redis.Spec())
	if err == nil || ctx.Err() != nil {
		return err
	}
	aside, back, none := s.redis.PutAside()
	if none != nil {
		return err
	}
	if s.start(ctx, cache, s.redis.Spec()) != nil {
		return errors.Join(err, back())
	}
	s.console.Say("Longbox: Redis could not read its files (recent events, state of rate limits) and starts empty; the damaged files are in %s", aside)
	return nil
}

func (s *Stack) migrate(ctx context.Context) error {
	slow := time.AfterFunc(3*time.Second, func() { s.console.Say("Longbox: updating the database schema") })
	defer slow.Stop()
	return s.supervisor.RunOnce(ctx, s.migrateSpec())
}

func (s *Stack) startFunctions(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range functions {
		l := program
		if name == plugin {
			l = helper
		}
		group.Go(func() error { return s.start(ctx, l, s.functionSpec(name)) })
	}
	return group.Wait()
}

// URL returns the public address of the default tenant.
func (s *Stack) URL() string { return strings.ReplaceAll(s.publicURL(), "{tenant}", tenant.Default) }

// DataDir returns the folder of all persistent data.
func (s *Stack) DataDir() string { return s.config.DataDir }

// Roots returns the served library folders.
func (s *Stack) Roots() []library.Root { return s.roots }

// NeedsAdmin asks the running API whether the first administrator must still be created.
func (s *Stack) NeedsAdmin(ctx context.Context) (bool, error) {
	status, err := setupStatus(ctx, fmt.Sprintf("http://%s/api/v1/setup/status", s.address(api)))
	return status.SetupRequired, err
}

// AdminSignsIn asks the running API whether the user of LONGBOX_ADMIN can sign in with its password. If there already
// was a user, migrate created none and changed nothing.
func (s *Stack) AdminSignsIn(ctx context.Context) (bool, error) {
	return signsIn(ctx, fmt.Sprintf("http://%s/api/v1/auth/me", s.address(api)), s.config.Admin)
}
