// Package operator wires functions/operator: the commands with which the operator of an installation manages tenants.
package operator

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Config of the function. It connects to the database as longbox_system only.
type Config struct {
	SystemURL string `env:"DATABASE_SYSTEM_URL,required"`
	Blob      blob.Config
	Events    events.Config
	RedisURL  string `env:"REDIS_URL" envDefault:"redis://127.0.0.1:6379"`
	Seal      seal.Config
}

// New builds the operator, on which the commands run.
func New(c Config) (*operator.Operator, *app.Base, error) {
	key, err := seal.New(c.Seal)
	if err != nil {
		return nil, nil, err
	}
	base, err := app.NewBase(app.Config{Database: db.Config{URL: c.SystemURL, Setting: "DATABASE_SYSTEM_URL", MaxConns: 2, Timeout: operator.StatementTimeout},
		Blob: c.Blob, Events: c.Events, RedisURL: c.RedisURL})
	if err != nil {
		return nil, nil, err
	}
	return &operator.Operator{System: base.Database, Redis: base.Redis, Events: base.Events, Media: base.Media, Library: base.Library, Bucket: base.Bucket, Key: key,
		Settle: operator.DefaultSettle}, base, nil
}
