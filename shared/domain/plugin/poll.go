package plugin

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
)

// queueSources creates the sources that a tested plugin has named in its response, or one source if it announces
// releases and has named none.
func (p *runnable) queueSources(b *pgx.Batch, a *asked) {
	if a.fault != nil {
		return
	}
	if named := release.Sources(p.said); named != nil {
		release.QueueSources(b, p.ID, named)
	} else {
		release.QueueDefault(b, p.ID)
	}
}

// Poll handles poll_release_source tasks. A plugin that fails is not asked again before the next poll is due.
func (r *Runner) Poll(ctx context.Context, h task.Held) (any, error) {
	var in struct {
		SourceID uuid.UUID `json:"sourceId"`
	}
	if err := json.Unmarshal(h.Params, &in); err != nil {
		return nil, fault.New(fault.BadRequest, "The task does not name a release source")
	}
	var at retries
	if err := h.Resume(&at); err != nil {
		return nil, err
	}
	source, err := release.Begin(ctx, r.Database, in.SourceID)
	if err != nil {
		return nil, err
	}
	p, err := r.polled(ctx, source)
	if err != nil {
		return nil, err
	}
	if err := p.plugin().usable(); err != nil {
		return nil, r.pollFailed(ctx, source, &release.Result{}, err)
	}
	var result release.Result
	asking, cancel := patience(ctx)
	a := r.ask(asking, p, "releases/poll", source.Params(), &result)
	err = a.refused()
	left := interrupted(ctx, asking, err)
	cancel()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	wait, again := at.again(err, left, fault.TooManyRequests)
	if left && again {
		return nil, task.Later(at, wait)
	}
	if err := r.note(ctx, p, a); err != nil {
		return nil, err
	}
	if again {
		return nil, task.Later(at, wait)
	}
	if err != nil {
		result = release.Result{TimedOut: a.fault.Code == plug.TimedOut && p.said != nil} // it had started
	}
	result.Take(p.said)
	if err != nil {
		return nil, r.pollFailed(ctx, source, &result, err)
	}
	return source.Record(ctx, r.Database, r.Publish, &result)
}

// pollFailed records why a poll failed, and the result of what the plugin sent before. The returned error fails the
// task for good.
func (r *Runner) pollFailed(ctx context.Context, source *release.Poll, result *release.Result, why error) error {
	message := fault.From(why).Message
	result.Failed = &message
	if _, err := source.Record(ctx, r.Database, r.Publish, result); err != nil {
		return err
	}
	return fault.New(fault.Conflict, "%s", message)
}

// polled reads the plugin of a source and the data it may see; nil if it was deleted.
func (r *Runner) polled(ctx context.Context, source *release.Poll) (p *runnable, err error) {
	var b pgx.Batch
	queueRunnable(&b, &p, source.PluginID)
	seconds := queuePatience(&b)
	if err := r.Database.Run(ctx, &b); err != nil || p == nil {
		return nil, err
	}
	p.patient(*seconds)
	p.releases, err = source.Known(ctx, r.Database)
	return p, err
}
