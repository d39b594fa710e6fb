// Package app wires the platform for the functions. Its subpackages wire the slices of each function.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/longbox/longbox/shared/domain/identity"
	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
	"github.com/longbox/longbox/shared/platform/queue"
	"github.com/longbox/longbox/shared/platform/ratelimit"
	"github.com/longbox/longbox/shared/platform/redisconn"
)

// Config holds the settings of all functions that answer requests or run tasks.
type Config struct {
	Database db.Config
	Blob     blob.Config
	Events   events.Config
	Queue    queue.Config
	RedisURL string `env:"REDIS_URL" envDefault:"redis://127.0.0.1:6379"`
}

// HTTPConfig adds the settings of functions that answer requests.
type HTTPConfig struct {
	Config
	HTTP      httpapi.Config
	Auth      auth.Config
	Tenant    tenant.Config
	PublicURL string `env:"PUBLIC_URL" envDefault:"http://localhost:8080"`
}

// SetupLog makes the log of the process one of JSON lines, from LOG_LEVEL on.
func SetupLog() error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(os.Getenv("LOG_LEVEL"), "info"))); err != nil {
		return fmt.Errorf("LOG_LEVEL: must be debug, info, warn or error, is %q", os.Getenv("LOG_LEVEL"))
	}
	slog.SetDefault(slog.New(marked{slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})}))
	redisconn.LogTo(slog.Default())
	return nil
}

// Main runs a program until it ends: open makes it from the settings C in the environment, run serves it.
func Main[C, P any](name string, open func(C) (P, *Base, error), run func(C, P, *Base) error) {
	lambdahttp.Main(name, func() error {
		if err := SetupLog(); err != nil {
			return err
		}
		c, err := environ.Parse[C]()
		if err != nil {
			return err
		}
		program, base, err := open(c)
		if err != nil {
			return err
		}
		defer base.Close()
		return run(c, program, base)
	})
}

// Base holds the platform services of one function. Nothing connects before its first use.
type Base struct {
	Database *db.DB
	system   *db.DB // nil unless OpenSystem was called
	Redis    redis.UniversalClient
	Events   *events.Publisher
	Library  *blob.Store
	Media    *blob.Store
	Bucket   string // of the media store
	// Tasks sends tasks to the workers' queue. It is nil when workers poll the task table.
	Tasks *task.Dispatcher
	// External checks access tokens of identity providers. Nil checks them with the keys in the database.
	External identity.External
}

// Wire opens the services that c describes and passes them to wire, which makes the program; if that fails, Wire closes
// them.
func Wire[P any](c Config, wire func(*Base) (P, error)) (P, *Base, error) {
	base, err := NewBase(c)
	if err != nil {
		return *new(P), nil, err
	}
	program, err := wire(base)
	if err != nil {
		base.Close()
		return *new(P), nil, err
	}
	return program, base, nil
}

// NewBase opens what Config describes.
func NewBase(c Config) (*Base, error) {
	if err := errors.Join(c.Events.Validate(), c.Blob.Validate(), c.Queue.Validate()); err != nil {
		return nil, err
	}
	options, err := redisconn.Options(c.RedisURL)
	if err != nil {
		return nil, err
	}
	var tasks *task.Dispatcher
	if c.Queue.TaskURL != "" {
		tasks = &task.Dispatcher{Queue: queue.Open(c.Queue, c.Queue.TaskURL), Window: c.Queue.Window, Resend: c.Queue.Resend}
	}
	database, err := db.Open(c.Database)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	return &Base{Tasks: tasks, Database: database, Redis: client, Events: events.New(client, c.Events, slog.Default()),
		Library: c.Blob.Library(), Media: c.Blob.Media(), Bucket: c.Blob.MediaBucket}, nil
}

// OpenSystem opens the pool at url (DATABASE_SYSTEM_URL), whose role sees all tenants; other settings come from c.
// Close closes it, too.
func (b *Base) OpenSystem(c db.Config, url string, maxConns int32) (*db.DB, error) {
	c.URL, c.Setting, c.MaxConns = url, "DATABASE_SYSTEM_URL", maxConns
	var err error
	b.system, err = db.Open(c)
	return b.system, err
}

// Flush sends what is unsent, until ctx ends: after an invocation, since Lambda freezes the process then.
func (b *Base) Flush(ctx context.Context) {
	if err := b.Events.Flush(ctx); err != nil {
		slog.Warn("some events were not sent", "error", err)
	}
}

// Close sends pending events and closes the connections.
func (b *Base) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	b.Flush(ctx)
	b.Database.Close()
	if b.system != nil {
		b.system.Close()
	}
	if err := b.Redis.Close(); err != nil {
		slog.Warn("cannot close the connections to Redis", "error", err)
	}
}

// Publish sends events after commit. The relay tells clients when they have missed some.
func (b *Base) Publish(ctx context.Context, tenant uuid.UUID, e ...events.Event) {
	if err := b.Events.Publish(context.WithoutCancel(ctx), tenant, e...); err != nil && !errors.Is(err, events.ErrDelayed) {
		slog.Warn("events were not sent", "tenant", tenant, "count", len(e), "error", err)
	}
}

// Added sends a tenant's new tasks to the workers, after commit. Without a queue, the insert itself has woken them.
func (b *Base) Added(ctx context.Context, tenant uuid.UUID) {
	b.Tasks.To(b.Database).Tell(ctx, tenant)
}

// Bump tells all processes that permissions of the tenant have changed.
func (b *Base) Bump(ctx context.Context, tenant uuid.UUID) {
	if err := b.Events.ChangeAccess(context.WithoutCancel(ctx), tenant); err != nil && !errors.Is(err, events.ErrDelayed) {
		slog.Warn("change of access was not announced; other processes notice it within a minute", "tenant", tenant, "error", err)
	}
}

// Router builds the router with its middleware, and the token signer.
func (b *Base) Router(c HTTPConfig) (*httpapi.API, *auth.Tokens, error) {
	if err := errors.Join(c.HTTP.Validate(), environ.PublicAddress("PUBLIC_URL", c.PublicURL)); err != nil {
		return nil, nil, err
	}
	tokens, err := auth.NewTokens(c.Auth)
	if err != nil {
		return nil, nil, err
	}
	resolver := tenant.NewResolver(b.Database, c.Tenant)
	id := identity.New(b.Database, tokens)
	if id.External = b.External; id.External == nil {
		id.External = oidc.NewBearer(b.Database)
	}
	a := httpapi.New(c.HTTP, b.Database, ratelimit.New(b.Redis, slog.Default()), httpapi.Identity{
		Tenant: resolver.ByHost, Confirm: resolver.Confirm, Known: id.Known, Resolve: id.Resolve, Tokens: tokens})
	a.Health(b.Check)
	return a, tokens, nil
}

// Check returns an error when Postgres does not answer within two seconds.
func (b *Base) Check(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := b.Database.Pool().Ping(ctx); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	return nil
}
