package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
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

// keptValue is a value that a plugin stores for a user.
type keptValue struct {
	Key       string     `db:"key"`
	Data      string     `db:"data"`
	ExpiresAt *time.Time `db:"expires_at"`
	UpdatedAt time.Time  `db:"updated_at"`
}

// tokens are a user's credentials for a plugin: entered by them, or issued by its service.
type tokens struct {
	Access  string     `json:"accessToken"`
	Refresh string     `json:"refreshToken,omitempty"`
	Expires *time.Time `json:"expiresAt,omitempty"`
}

// sealedFor is the context to which a user's encrypted credentials are bound.
func sealedFor(tenant, id uuid.UUID) string { return tenant.String() + "/user-plugin/" + id.String() }

// tokens decrypts the user's credentials; nil if there are none.
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

// start makes the plugin's process the user's own.
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

// known returns the data that the plugin may request: what it stores for the user.
func (m *mine) known() *plug.Known {
	out := map[string]plug.Stored{}
	for _, v := range m.kept {
		out[v.Key] = plug.Stored{Data: json.RawMessage(v.Data), ExpiresAt: v.ExpiresAt, UpdatedAt: v.UpdatedAt}
	}
	return &plug.Known{Storage: out}
}

// changed records a plugin's changes, for its next request and for storing.
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

// queueOutcome records the outcome of requests in the user's name, and what the plugin stores now. Failures count only
// for the user: an expired token must not disable the plugin for others.
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

// userParams are the parameters of a task that acts for a user.
type userParams struct {
	PluginID   uuid.UUID `json:"pluginId"`
	UserID     uuid.UUID `json:"userId"`
	ExternalID string    `json:"externalId,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// errHeld says that another task is using the plugin for the same user.
var errHeld = errors.New("another task is using the plugin for this user")

// How long a task holds the plugin of a user, renewed with every request, and the interval of retries.
const (
	holdFor  = 15 * time.Minute
	waitHeld = 5 * time.Second
)

// holding takes the hold of a user's plugin $1 for task $2; the hold of a dead worker expires.
const holding = `update user_plugin u set held_by = $2, held_until = now() + $3::interval
	where` + ownRow + ` and (u.held_by is null or u.held_by = $2 or u.held_until < now())`

// inName runs a task in its user's name, while no other task uses the plugin for that user. do receives the user's
// plugin and two contexts: one for the database, and one for requests, which ends when others want the worker. Then the
// task continues later, as it does when the plugin is rate limited or unavailable. A rejection by the plugin ends it.
func (r *Runner) inName(ctx context.Context, h task.Held, at *retries, place any, do func(ctx, asking context.Context, p *runnable, in userParams) (any, error)) (any, error) {
	if err := h.Resume(place); err != nil {
		return nil, err
	}
	if at.Since.IsZero() {
		at.Since = time.Now()
	}
	var in userParams
	if err := json.Unmarshal(h.Params, &in); err != nil || in.UserID == uuid.Nil || in.PluginID == uuid.Nil {
		return nil, fault.New(fault.BadRequest, "The task does not name both a plugin and a user")
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
	var no *refusal
	left, rejected := interrupted(ctx, asking, err), errors.As(err, &no)
	if left || !rejected {
		if wait, ok := at.again(err, left, fault.TooManyRequests, fault.Unavailable); ok {
			return nil, task.Later(place, wait)
		}
	}
	if rejected {
		return nil, fault.New(fault.BadRequest, "%s", no.Error())
	}
	return out, err
}

// forTask returns the plugin of the user of ctx with a fresh token, held for the task; errHeld if another task holds
// it.
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

// skip is the error that a plugin must not be asked for its user at all.
type skip struct {
	error
	of *runnable
}

// Unwrap returns the error that a command would get.
func (s *skip) Unwrap() error { return s.error }

// release gives up the hold of a user's plugin, even if the task was cancelled.
func (r *Runner) release(ctx context.Context, p *runnable, id uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	free := db.In(ctx, db.Tenant(p.Tenant)) // the task's lease may be lost
	if _, err := db.Exec(free, r.Database, "update user_plugin set held_by = null, held_until = null where tenant_id = app.tenant() and id = $1 and held_by = $2", p.mine.ID, id); err != nil {
		slog.ErrorContext(ctx, "cannot release the plugin of a user; the hold expires", "plugin", p.Name, "error", err)
	}
}

// refusal is a rejection by the plugin; a rate limit is none.
type refusal struct {
	error
	rpc int // the JSON-RPC error code; 0: none
}

// Unwrap returns the cause.
func (r *refusal) Unwrap() error { return r.error }

// outcome records a request; a rejection by the plugin is returned as a refusal.
func (r *Runner) outcome(ctx context.Context, p *runnable, a *asked) error {
	if err := r.note(ctx, p, a); err != nil {
		return err
	}
	err := a.refused()
	if err == nil || a.fault.Code == plug.Limited || a.fault.Code == plug.Unavailable {
		return err
	}
	return &refusal{err, a.fault.RPC}
}

// enqueueFor starts the task of a column for users' plugins, or finds the unfinished ones, whose priority it may raise;
// started returns the ids of the new ones after the batch has run. Without a priority they have that of their type.
func enqueueFor(b *pgx.Batch, column string, priority *int, all []mine) (started func() []uuid.UUID, err error) {
	typ := taskOf[column]
	made, ids := make([]uuid.UUID, len(all)), make([]uuid.UUID, len(all))
	key := func(m *mine) string { return typ + ":" + m.ID.String() }
	for i := range all {
		m := &all[i]
		made[i] = uuid.Must(uuid.NewV7())
		if err := task.Add(b, task.Spec{ID: made[i], Type: typ, Params: userParams{PluginID: m.PluginID, UserID: m.Account}, Priority: priority, DedupeKey: key(m)}, &ids[i]); err != nil {
			return nil, err
		}
	}
	for i := range all { // tasks are locked before their targets
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
