// Command migrate brings the database to the schema of this build. With a single tenant it also creates the default
// tenant, its library roots and its first administrator, if they are missing. As a Lambda function it does this on
// every invocation and returns what it did.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/setup"
	"github.com/longbox/longbox/shared/domain/tenant"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
	"github.com/longbox/longbox/shared/platform/schema"
)

type config struct {
	OwnerURL string `env:"DATABASE_OWNER_URL,required"`
	// AdminURL is optional. With it, migrate creates the database and the roles; three roles get the passwords in their
	// URLs.
	AdminURL  string `env:"DATABASE_ADMIN_URL"`
	AppURL    string `env:"DATABASE_URL"`
	SystemURL string `env:"DATABASE_SYSTEM_URL"`

	Single bool `env:"SINGLE_TENANT" envDefault:"false"`
	// Roots lists the library roots of the default tenant: `/folder=bucket[/prefix]` pairs, separated by semicolons.
	Roots string `env:"LIBRARY_ROOTS"`
	Admin string `env:"LONGBOX_ADMIN"` // user:password
}

func main() {
	lambdahttp.Main("migrate", func() error {
		if err := app.SetupLog(); err != nil {
			return err
		}
		c, err := environ.Parse[config]()
		if err != nil {
			return err
		}
		if lambdahttp.InLambda() {
			return lambdahttp.Invoke(func(ctx context.Context, payload json.RawMessage) (any, error) {
				return invoked(ctx, c, payload)
			}, nil)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 14*time.Minute)
		defer cancel()
		_, err = migrate(ctx, c)
		return err
	})
}

// order is the payload of an invocation. With dry_run, migrate only reports the pending migrations.
type order struct {
	DryRun bool `json:"dry_run"`
}

type result struct {
	Version   int64   `json:"version"`             // number of the last migration
	Applied   int     `json:"applied"`             // migrations
	Reindexed int     `json:"reindexed,omitempty"` // indexes rebuilt because the system's collation rules changed
	Missing   []int64 `json:"missing,omitempty"`
	Tenant    string  `json:"tenant,omitempty"` // name of the default tenant, if there is one
	Roots     int     `json:"roots,omitempty"`
	Admin     string  `json:"admin,omitempty"`
	// Warnings are sentences about what a person should look at.
	Warnings []string `json:"warnings,omitempty"`
}

// warn adds a warning to the result and the log.
func (r *result) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	slog.Warn(text)
	r.Warnings = append(r.Warnings, text)
}

func invoked(ctx context.Context, c config, payload json.RawMessage) (any, error) {
	if e, ok := resourceEvent(payload); ok {
		return resource(ctx, c, e)
	}
	var o order
	if p := bytes.TrimSpace(payload); len(p) > 0 && string(p) != "null" {
		d := json.NewDecoder(bytes.NewReader(p))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil {
			return nil, fmt.Errorf(`the payload must be empty, {} or {"dry_run": true}: %w`, err)
		}
	}
	if !o.DryRun {
		return migrate(ctx, c)
	}
	version, _, missing, err := schema.Pending(ctx, c.OwnerURL)
	return result{Version: version, Missing: missing}, err
}

// migrate updates the schema and the default tenant. It is idempotent.
func migrate(ctx context.Context, c config) (result, error) {
	if c.AdminURL != "" {
		if err := schema.Prepare(ctx, c.AdminURL, c.OwnerURL, c.AppURL, c.SystemURL); err != nil {
			return result{}, err
		}
	}
	n, reindexed, err := schema.Migrate(ctx, c.OwnerURL)
	if err != nil {
		return result{}, err
	}
	if reindexed > 0 {
		slog.Info("the system's rules for sorting text have changed: rebuilt the indexes", "indexes", reindexed)
	}
	version, own, _, err := schema.Pending(ctx, c.OwnerURL)
	if err != nil {
		return result{}, err
	}
	slog.Info("schema is up to date", "applied", n, "version", version)
	done := result{Version: version, Applied: n, Reindexed: reindexed}
	if version > own {
		done.warn("the schema of the database is of a newer Longbox (%d, this one has %d): going back by one release works, by more may fail", version, own)
	}
	if c.Single {
		err = prepareDefault(ctx, c, &done)
	}
	return done, err
}

func prepareDefault(ctx context.Context, c config, done *result) error {
	roots, err := parseRoots(c.Roots)
	if err != nil {
		return err
	}
	d, err := db.Open(db.Config{URL: c.OwnerURL, Setting: "DATABASE_OWNER_URL", MaxConns: 2, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer d.Close()
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	var id uuid.UUID
	err = d.Pool().QueryRow(ctx, `insert into tenant (id, name, secret) values ($1, $2, $3)
		on conflict (name) do update set name = excluded.name returning id`, uuid.Must(uuid.NewV7()), tenant.Default, secret).Scan(&id)
	if err != nil {
		return fmt.Errorf("default tenant: %w", err)
	}
	ctx = db.In(ctx, db.Tenant(id))
	var b pgx.Batch
	b.Queue("delete from library_root where tenant_id = app.tenant()")
	for _, r := range roots {
		b.Queue("insert into library_root (tenant_id, path, bucket, prefix) values (app.tenant(), $1, $2, $3)", r.Path, r.Bucket, r.Prefix)
	}
	if err := d.Run(ctx, &b); err != nil {
		return fmt.Errorf("library roots: %w", err)
	}
	lost, err := library.Reroot(ctx, d, roots)
	if err != nil {
		return fmt.Errorf("library roots: %w", err)
	}
	for _, l := range lost {
		done.warn("library %q is at %s, which is in no folder of LIBRARY (without make run: LIBRARY_ROOTS): add the folder, "+
			"or change the library's path (PATCH /api/v1/libraries/%s); deleting the library would delete what people have read", l.Name, l.Path, l.ID)
	}
	done.Tenant, done.Roots = tenant.Default, len(roots)
	if c.Admin == "" {
		return nil
	}
	user, password, ok := strings.Cut(c.Admin, ":")
	if !ok || user == "" || password == "" {
		return fmt.Errorf("LONGBOX_ADMIN: must be user:password")
	}
	if err := setup.CreateAdmin(ctx, d, user, password); err != nil {
		return fmt.Errorf("LONGBOX_ADMIN: %w", err)
	}
	done.Admin = user
	return nil
}

func parseRoots(s string) ([]filesystem.Root, error) {
	var out []filesystem.Root
	for _, pair := range strings.Split(s, ";") {
		if pair == "" {
			continue
		}
		r, err := filesystem.ParseRoot(pair)
		if err != nil {
			return nil, fmt.Errorf("LIBRARY_ROOTS: %w", err)
		}
		out = append(out, r)
	}
	return out, nil
}
