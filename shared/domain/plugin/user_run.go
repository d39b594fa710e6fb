package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/cut"
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
		keys, data, expire, updated = append(keys, key), append(data, cut.Storable(string(v.Data))), append(expire, v.ExpiresAt), append(updated, v.UpdatedAt)
	}
	b.Queue(`delete from user_plugin_data where tenant_id = app.tenant() and user_plugin_id = $1 and (key = any($2) or expires_at < now())`, m.ID, gone)
	if len(keys) == 0 {
		return
	}
	b.Queue(`insert into user_plugin_data as d (tenant_id, user_plugin_id, key, data, expires_at, updated_at)
		select u.tenant_id, u.id, v.key, v.data, v.expires_at, v.updated_at from user_plugin u,
		  unnest($2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[]) v(key, data, expires_at, updated_at)
		where u.tenant_id = app.tenant() and u.id = $1 and (select count(*) + cardinality($2::text[]) <= $6 and coalesce(sum(octet_length(d.key) + octet_length(d.data)), 0) <= $7
		  from user_plugin_data d where d.tenant_id = app.tenant() and d.user_plugin_id = $1 and d.key <> all($2))
		on conflict (tenant_id, user_plugin_id, key) do update set data = excluded.data, expires_at = excluded.expires_at, updated_at = excluded.updated_at`,
		m.ID, keys, data, expire, updated, plug.MaxKeys, plug.MaxStorage)
}

// userParams are those of a task that asks a plugin in the name of a user.
type userParams struct {
	PluginID   uuid.UUID `json:"pluginId"`
	UserID     uuid.UUID `json:"userId"`
	ExternalID string    `json:"externalId,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// errHeld says that another task asks the plugin for the same user.
var errHeld = errors.New("another task asks the plugin for this user")

// Bounds of how long a task has the plugin of a user for itself: it says so again with every request.
const (
	holdFor  = 15 * time.Minute
	waitHeld = 5 * time.Second
)

// holding keeps the plugin of a user, which $1 names, for the task $2; what was held by a worker that is gone is free
// after a while.
const holding = `update user_plugin u set held_by = $2, held_until = now() + $3::interval
	where` + ownRow + ` and (u.held_by is null or u.held_by = $2 or u.held_until < now())`

// inName does a task in the name of the user whom it is for, while no other task asks the plugin for them. do is given
// the plugin as that user has it; the contexts are one for the database, and one for asking, which ends where others
// want the worker: the task goes on later then, as it does where the plugin takes no more requests now.
func (r *Runner) inName(ctx context.Context, h task.Held, at *userPlace, place any, do func(ctx, asking context.Context, p *runnable, in userParams) (any, error)) (any, error) {
	if err := h.Resume(place); err != nil {
		return nil, err
	}
	if at.Since.IsZero() {
		at.Since = time.Now()
	}
	var in userParams
	if err := json.Unmarshal(h.Params, &in); err != nil || in.UserID == uuid.Nil || in.PluginID == uuid.Nil {
		return nil, fault.New(fault.BadRequest, "The task names no plugin or no user")
	}
	ctx = db.In(ctx, db.Acting{Task: h.Scope(), Account: in.UserID})
	p, err := r.forTask(ctx, h.ID, in.PluginID)
	if errors.Is(err, errHeld) && time.Since(at.Since) < mostWaiting {
		return nil, task.Later(place, waitHeld)
	}
	if err != nil {
		return nil, err
	}
	defer r.release(ctx, p, h.ID)
	asking, cancel := patience(ctx)
	defer cancel()
	out, err := do(ctx, asking, p, in)
	if err != nil && asking.Err() != nil && ctx.Err() == nil && at.Refusals < mostRefusals {
		at.Refusals++
		return nil, task.Later(place, 0)
	}
	return at.later(out, err, place)
}

// forTask is a plugin as the user of ctx has it, with a fresh token, held for the task; errHeld where another has it.
func (r *Runner) forTask(ctx context.Context, id, plugin uuid.UUID) (*runnable, error) {
	var b pgx.Batch
	var n int64
	db.Affected(&b, &n, holding, plugin, id, holdFor)
	load := queueMine(&b, plugin, true)
	seconds := queuePatience(&b)
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	p, err := load()
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, errHeld
	}
	p.patient(*seconds)
	if err = p.ready(); err != nil {
		err = &skip{err, p}
	} else {
		err = r.freshen(ctx, p)
	}
	if err != nil {
		r.release(ctx, p, id)
		return nil, err
	}
	return p, nil
}

// skip is that a plugin is not to be asked in the name of its user at all.
type skip struct {
	error
	of *runnable
}

// Unwrap is what a command would be told.
func (s *skip) Unwrap() error { return s.error }

// release lets other tasks have the plugin of a user, also where the task was cancelled.
func (r *Runner) release(ctx context.Context, p *runnable, id uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	ctx = db.In(ctx, db.Tenant(p.Tenant)) // the task may be lost
	if _, err := db.Exec(ctx, r.Database, "update user_plugin set held_by = null, held_until = null where tenant_id = app.tenant() and id = $1 and held_by = $2", p.mine.ID, id); err != nil {
		slog.ErrorContext(ctx, "the plugin of a user stays held for a while", "plugin", p.Name, "error", err)
	}
}

// userPlace is how long a task in the name of a user has waited.
type userPlace struct {
	Since    time.Time `json:"since"`
	Waits    int       `json:"waits"`    // for the rate limit
	Refusals int       `json:"refusals"` // by the plugin, or because others wanted the worker
}

// later has a task go on after a while where a plugin takes no more requests now, or cannot be asked; each time after a
// longer one, and not for ever. What the plugin refuses ends it.
func (at *userPlace) later(out any, err error, place any) (any, error) {
	var limited *limit
	var no *refusal
	var f *fault.Error
	switch {
	case err == nil:
		return out, nil
	case errors.As(err, &no):
		return nil, fault.New(fault.BadRequest, "%s", no.Error())
	case errors.As(err, &limited):
		if time.Since(at.Since) > mostWaiting {
			return nil, err
		}
		at.Waits++
		wait := min(time.Duration(limited.wait)*time.Second<<min(at.Waits, 10), longestWait)
		return nil, task.Later(place, wait/2+rand.N(wait)) // not all at once
	case errors.As(err, &f) && (f.Code == fault.TooManyRequests || f.Code == fault.Unavailable) && at.Refusals < mostRefusals:
		at.Refusals++
		return nil, task.Later(place, min(max(f.RetryAfter, 10*time.Second)*time.Duration(at.Refusals), longestWait))
	}
	return nil, err
}

// refusal is what a plugin has not done; that it is to be asked later is none.
type refusal struct{ error }

// Unwrap is the cause.
func (r *refusal) Unwrap() error { return r.error }

// outcome notes how a request went; what the plugin refuses is a refusal.
func (r *Runner) outcome(ctx context.Context, p *runnable, a *asked) error {
	if err := r.note(ctx, p, a); err != nil {
		return err
	}
	err := a.refused()
	if err == nil || a.fault.Code == plug.Limited || a.fault.Code == plug.Unavailable {
		return err
	}
	return &refusal{err}
}

// enqueueFor starts the task of a column for plugins of users, or finds those that are unfinished; started are the ids
// of those that were, once the batch has run.
func enqueueFor(b *pgx.Batch, column string, all []mine) (started func() []uuid.UUID, err error) {
	typ := taskOf[column]
	made, ids := make([]uuid.UUID, len(all)), make([]uuid.UUID, len(all))
	key := func(m *mine) string { return typ + ":" + m.ID.String() }
	for i := range all {
		m := &all[i]
		made[i] = uuid.Must(uuid.NewV7())
		if err := task.Add(b, task.Spec{ID: made[i], Type: typ, Params: userParams{PluginID: m.PluginID, UserID: m.Account}, DedupeKey: key(m)}, &ids[i]); err != nil {
			return nil, err
		}
	}
	for i := range all { // tasks come before what they are about in the order of locks
		b.Queue("update user_plugin set "+column+` = (select t.id from task t where t.tenant_id = app.tenant() and t.dedupe_key = $2 and t.status in ('pending', 'running'))
			where tenant_id = app.tenant() and id = $1`, all[i].ID, key(&all[i]))
	}
	return func() []uuid.UUID {
		out := []uuid.UUID{}
		for i := range made {
			if made[i] == ids[i] {
				out = append(out, made[i])
			}
		}
		return out
	}, nil
}
