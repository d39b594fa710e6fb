package app

import (
	"context"
	"log/slog"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// marked is the handler of a log whose lines name the request, tenant and task of their context. A line that names them
// itself must be logged without the context.
type marked struct{ slog.Handler }

// Handle adds the names.
func (m marked) Handle(ctx context.Context, line slog.Record) error {
	var task, tenant uuid.UUID
	switch s := db.ScopeOf(ctx).(type) {
	case nil:
		tenant = httpapi.TenantOf(ctx).ID
	case db.Task:
		task, tenant = s.ID, s.Tenant
	case db.Acting:
		task, tenant = s.ID, s.Tenant
	default:
		tenant = s.TenantID()
	}
	if id := httpapi.ID(ctx); id != "" {
		line.AddAttrs(slog.String("id", id))
	}
	if tenant != uuid.Nil {
		line.AddAttrs(slog.String("tenant", tenant.String()))
	}
	if task != uuid.Nil {
		line.AddAttrs(slog.String("task", task.String()))
	}
	return m.Handler.Handle(ctx, line)
}

// WithAttrs keeps the names.
func (m marked) WithAttrs(attrs []slog.Attr) slog.Handler { return marked{m.Handler.WithAttrs(attrs)} }

// WithGroup keeps the names.
func (m marked) WithGroup(name string) slog.Handler { return marked{m.Handler.WithGroup(name)} }
