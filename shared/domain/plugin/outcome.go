package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

// noteTime limits the recording of a request's outcome.
const noteTime = 5 * time.Second

// counts reports whether a request counts as the plugin's failure: not if it lacks the item, is rate limited or does
// not offer the method, nor if it could not be asked.
func (a *asked) counts() bool {
	f := a.fault
	switch {
	case f == nil || a.unsent || f.Code == plug.Limited || f.Code == plug.Unavailable || f.Code == plug.FetchFailed:
		return false
	case f.Code == plug.TimedOut && a.hurried:
		return false
	case f.Code == plug.RPCFailed:
		return !a.blameless && f.RPC != notFound && f.RPC != methodNotFound
	}
	return true
}

// queueOutcome records the outcome of requests to a plugin.
func queueOutcome(b *pgx.Batch, p *runnable, all ...*asked) {
	queueCounts(b, p, all...)
	if p.mine != nil {
		p.mine.queueOutcome(b, all...)
		return
	}
	p.stopped = false
	for _, a := range all {
		switch {
		case a.fault == nil:
			b.Queue(`update plugin set health_status = case when enabled then 'healthy' else health_status end, failure_count = 0, last_success_at = now(),
				disabled_reason = case when enabled then null else disabled_reason end, manifest = coalesce($2::jsonb, manifest)
				where tenant_id = app.tenant() and id = $1`, p.ID, a.manifest)
		case a.counts():
			queueFailure(b, p.ID, a, &p.stopped)
		}
	}
}

// queueLock locks a plugin, before anything of it is changed, as in its deletion.
func queueLock(b *pgx.Batch, id uuid.UUID) {
	b.Queue("select from plugin where tenant_id = app.tenant() and id = $1 for no key update", id)
}

// queueCounts counts requests to a plugin.
func queueCounts(b *pgx.Batch, p *runnable, all ...*asked) {
	queueLock(b, p.ID)
	all = slices.SortedFunc(slices.Values(all), func(a, b *asked) int { return strings.Compare(a.method, b.method) })
	for _, a := range all {
		sent, failed, refused := 1, 0, 0
		if a.fault != nil {
			failed = 1
		}
		if a.unsent {
			sent, failed = 0, 0
		}
		if a.fault != nil && a.fault.Code == plug.Limited {
			refused = 1
		}
		b.Queue(`insert into plugin_method as m (tenant_id, plugin_id, method, requests, failed, refused, total_ms)
			select app.tenant(), id, $2, $3::bigint, $4::bigint, $5::bigint, $6::double precision from plugin where tenant_id = app.tenant() and id = $1
			on conflict (tenant_id, plugin_id, method) do update set requests = m.requests + excluded.requests, failed = m.failed + excluded.failed,
			  refused = m.refused + excluded.refused, total_ms = m.total_ms + excluded.total_ms`, p.ID, a.method, sent, failed, refused,
			float64(a.took.Microseconds())/1000*float64(sent))
	}
}

// queueFailure records a failure, and disables the plugin if it was one too many; stopped is true then.
func queueFailure(b *pgx.Batch, id uuid.UUID, a *asked, stopped *bool) {
	b.Queue(`insert into plugin_failure (tenant_id, id, plugin_id, code, message, method, request_summary)
		select app.tenant(), gen_random_uuid(), id, $2, $3, $4, nullif($5, '') from plugin where tenant_id = app.tenant() and id = $1`,
		id, a.fault.Code, a.fault.Message, a.method, a.summary)
	b.Queue(`with recent as (
			select count(*) >= $2 as many, bool_and(p.enabled) as was from plugin_failure f join plugin p on p.tenant_id = f.tenant_id and p.id = f.plugin_id
			where f.tenant_id = app.tenant() and f.plugin_id = $1 and f.occurred_at > greatest(now() - $3::interval, p.counted_from))
		update plugin p set failure_count = p.failure_count + 1, last_failure_at = now(), enabled = p.enabled and not many,
		  health_status = case when p.enabled and not many then 'unhealthy' else 'disabled' end,
		  disabled_reason = case when p.enabled and many then $4 || $5 when p.enabled then $5 else coalesce(p.disabled_reason, $5) end
		from recent where p.tenant_id = app.tenant() and p.id = $1 returning coalesce(many and was, false)`, id, threshold, window,
		fmt.Sprintf("Disabled after %d failures within an hour; the last: ", threshold), a.fault.Message).QueryRow(func(row pgx.Row) error {
		var now bool
		if err := row.Scan(&now); err != nil && !errors.Is(err, pgx.ErrNoRows) { // it may be deleted
			return err
		}
		*stopped = *stopped || now
		return nil
	})
	b.Queue(`delete from plugin_failure where tenant_id = app.tenant() and plugin_id = $1 and (occurred_at < now() - $2::interval or id in (
		select f.id from plugin_failure f where f.tenant_id = app.tenant() and f.plugin_id = $1 order by f.occurred_at desc offset $3))`, id, keptFor, mostFailures)
}

// note records outcomes if nothing else is written, even if the client has disconnected.
func (r *Runner) note(ctx context.Context, p *runnable, all ...*asked) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTime)
	defer cancel()
	var b pgx.Batch
	queueOutcome(&b, p, all...)
	return r.noted(ctx, p, r.Database.Run(ctx, &b))
}

// noted publishes that a batch disabled a plugin, unless the batch failed.
func (r *Runner) noted(ctx context.Context, p *runnable, err error) error {
	if err == nil && p.stopped {
		p.stopped = false
		r.Publish(ctx, p.Tenant, events.Plugin("disabled", p.ID))
	}
	return p.kept(err)
}

// kept clears the stored changes after a successful batch.
func (p *runnable) kept(err error) error {
	if err == nil && p.mine != nil {
		p.mine.keeping = nil
	}
	return err
}

// write writes a plugin's results and the outcome of the requests. If the former fails, the latter is still recorded.
func (r *Runner) write(ctx context.Context, p *runnable, b *pgx.Batch, all ...*asked) error {
	queueOutcome(b, p, all...)
	err := r.noted(ctx, p, r.Database.Run(ctx, b))
	if err == nil {
		return nil
	}
	if noted := r.note(ctx, p, all...); noted != nil {
		slog.ErrorContext(ctx, "cannot record a request to a plugin", "plugin", p.Name, "error", noted)
	}
	return err
}

// limit is the error of a plugin's exhausted rate limit, with the seconds to wait; found is the id that was found
// before.
type limit struct {
	error
	wait  int
	found string
}

// Unwrap returns the underlying error.
func (l *limit) Unwrap() error { return l.error }

// refused returns the API error of a failed request, or nil.
func (a *asked) refused() error {
	f := a.fault
	if f != nil && a.unsent && f.Code == plug.Limited {
		return &limit{error: said(f), wait: f.RetryAfter}
	}
	return said(f)
}

func said(f *plug.Fault) error {
	switch {
	case f == nil:
		return nil
	case f.RPC == notFound:
		return fault.New(fault.NotFound, "The plugin does not know this entry: %s", f.Message)
	case f.Code == plug.Limited:
		return fault.New(fault.TooManyRequests, "%s", f.Message).After(time.Duration(max(f.RetryAfter, 1)) * time.Second)
	}
	return fault.New(fault.Unavailable, "%s", f.Message).After(30 * time.Second)
}

// errNoted is the fault of the last request, after all were noted.
func (r *Runner) errNoted(ctx context.Context, p *runnable, all ...*asked) error {
	if err := r.note(ctx, p, all...); err != nil {
		return err
	}
	return all[len(all)-1].refused()
}
