package plugin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/seal"
)

// keptValue is something that a plugin keeps for a user.
type keptValue struct {
	Key       string     `db:"key"`
	Data      string     `db:"data"`
	ExpiresAt *time.Time `db:"expires_at"`
	UpdatedAt time.Time  `db:"updated_at"`
}

// tokens are what a user's credentials of a plugin are: entered by them, or given by its service.
type tokens struct {
	Access  string     `json:"accessToken"`
	Refresh string     `json:"refreshToken,omitempty"`
	Expires *time.Time `json:"expiresAt,omitempty"`
}

// sealedFor is what a user's credentials are sealed for.
func sealedFor(tenant, id uuid.UUID) string { return tenant.String() + "/user-plugin/" + id.String() }

// tokens are the user's; nil where there are none.
func (m *mine) tokens(key *seal.Key, tenant uuid.UUID) (*tokens, error) {
	if m.Credentials == nil {
		return nil, nil
	}
	secret, err := key.Open(sealedFor(tenant, m.ID), m.Credentials)
	if err != nil {
		return nil, err
	}
	out := &tokens{}
	return out, json.Unmarshal(secret, out)
}

// start has the plugin's process be that of the user.
func (m *mine) start(key *seal.Key, p *runnable, s *plug.Start) (secrets []string, err error) {
	s.ID, s.Name = m.ID.String(), p.Name+"/"+m.ID.String()[:8]
	s.Init["userConfig"], s.Init["userId"], s.Init["userPluginId"] = m.userConfig(), m.Account, m.ID
	t, err := m.tokens(key, p.Tenant)
	if err != nil || t == nil {
		return nil, err
	}
	s.Init["credentials"] = map[string]string{"access_token": t.Access}
	if p.CredentialDelivery != "init_message" {
		s.Env["ACCESS_TOKEN"] = t.Access
	}
	return []string{t.Access, t.Refresh}, nil
}

// known is what the plugin may ask for: what it keeps for the user.
func (m *mine) known() *plug.Known {
	out := map[string]plug.Stored{}
	for _, v := range m.kept {
		out[v.Key] = plug.Stored{Data: json.RawMessage(v.Data), ExpiresAt: v.ExpiresAt, UpdatedAt: v.UpdatedAt}
	}
	return &plug.Known{Storage: out}
}

// changed takes what a plugin has changed, for its next request and to be written.
func (m *mine) changed(c *plug.Changes) {
	if c == nil {
		return
	}
	if m.keeping == nil {
		m.keeping = map[string]*plug.Stored{}
	}
	maps.Copy(m.keeping, c.Storage)
	m.kept = slices.DeleteFunc(m.kept, func(v keptValue) bool { _, ok := c.Storage[v.Key]; return ok })
	for key, v := range c.Storage {
		if v != nil {
			m.kept = append(m.kept, keptValue{key, string(v.Data), v.ExpiresAt, v.UpdatedAt})
		}
	}
}

// queueOutcome notes how requests in the name of the user went, and what the plugin keeps now. What goes wrong is the
// user's alone: a token that is over must not disable the plugin for others.
func (m *mine) queueOutcome(b *pgx.Batch, all ...*asked) {
	b.Queue("select from user_plugin where tenant_id = app.tenant() and id = $1 for no key update", m.ID)
	for _, a := range all {
		switch {
		case a.fault == nil:
			b.Queue(`update user_plugin set health_status = 'healthy', failure_count = 0, last_success_at = now() where tenant_id = app.tenant() and id = $1`, m.ID)
		case a.counts():
			b.Queue(`update user_plugin set health_status = 'unhealthy', failure_count = failure_count + 1, last_failure_at = now()
				where tenant_id = app.tenant() and id = $1`, m.ID)
		}
	}
	var gone, keys, data []string
	var expire []*time.Time
	var updated []time.Time
	for _, key := range slices.Sorted(maps.Keys(m.keeping)) {
		v := m.keeping[key]
		if v == nil {
			gone = append(gone, key)
			continue
		}
		keys, data, expire, updated = append(keys, key), append(data, clean(string(v.Data))), append(expire, v.ExpiresAt), append(updated, v.UpdatedAt)
	}
	m.keeping = nil
	b.Queue(`delete from user_plugin_data where tenant_id = app.tenant() and user_plugin_id = $1 and (key = any($2) or expires_at < now())`, m.ID, gone)
	if len(keys) == 0 {
		return
	}
	b.Queue(`insert into user_plugin_data as d (tenant_id, user_plugin_id, key, data, expires_at, updated_at)
		select u.tenant_id, u.id, v.key, v.data, v.expires_at, v.updated_at from user_plugin u,
		  unnest($2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[]) v(key, data, expires_at, updated_at)
		where u.tenant_id = app.tenant() and u.id = $1
		on conflict (tenant_id, user_plugin_id, key) do update set data = excluded.data, expires_at = excluded.expires_at, updated_at = excluded.updated_at`,
		m.ID, keys, data, expire, updated)
}

// userParams are those of a task that asks a plugin in the name of a user.
type userParams struct {
	PluginID   uuid.UUID `json:"pluginId"`
	UserID     uuid.UUID `json:"userId"`
	ExternalID string    `json:"externalId,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// forTask is ctx in the name of the user whom a task is for, with the plugin as that user has it, whose token is fresh.
// patient gives it the time of a task.
func (r *Runner) forTask(ctx context.Context, h task.Held) (context.Context, *runnable, userParams, error) {
	var in userParams
	if err := json.Unmarshal(h.Params, &in); err != nil || in.UserID == uuid.Nil || in.PluginID == uuid.Nil {
		return ctx, nil, in, fault.New(fault.BadRequest, "The task names no plugin or no user")
	}
	ctx = db.In(ctx, db.Acting{Task: h.Scope(), Account: in.UserID})
	var b pgx.Batch
	load := queueMine(&b, in.PluginID)
	seconds := queuePatience(&b)
	if err := r.Database.Run(ctx, &b); err != nil {
		return ctx, nil, in, err
	}
	p, err := load()
	if err != nil {
		return ctx, nil, in, err
	}
	if err := p.ready(); err != nil {
		return ctx, nil, in, err
	}
	p.patient(*seconds)
	return ctx, p, in, r.freshen(ctx, p)
}

// enqueueFor starts the task of a column for a plugin of a user, or finds the one that is unfinished; fresh tells
// whether it was started.
func enqueueFor(b *pgx.Batch, column string, m *mine) (id *uuid.UUID, fresh func() bool, err error) {
	made, typ := uuid.Must(uuid.NewV7()), taskOf[column]
	id = &uuid.UUID{}
	key := typ + ":" + m.ID.String()
	if err := task.Add(b, task.Spec{ID: made, Type: typ, Params: userParams{PluginID: m.PluginID, UserID: m.Account}, DedupeKey: key}, id); err != nil {
		return nil, nil, err
	}
	b.Queue("update user_plugin set "+column+` = (select t.id from task t where t.tenant_id = app.tenant() and t.dedupe_key = $2 and t.status in ('pending', 'running'))
		where tenant_id = app.tenant() and id = $1`, m.ID, key)
	return id, func() bool { return *id == made }, nil
}
