package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// DryRunBody configures a dry run.
type DryRunBody struct {
	ConfigOverride *JobConfig `json:"configOverride,omitempty" doc:"Used instead of the job's config"`
	SampleSize     *int32     `json:"sampleSize,omitempty" nullable:"true" minimum:"1" maximum:"20" doc:"Defaults to 5"`
}

// DryRun is what a job would do.
type DryRun struct {
	TotalEligible            int64   `json:"totalEligible" doc:"Number of series and books that the job would request; if more than 500 series or 500 books have no id of the plugin and auto-matching has conditions, the number that meets them is estimated from 500 of these"`
	EstSkippedNoID           int64   `json:"estSkippedNoId"`
	EstSkippedRecentlySynced int64   `json:"estSkippedRecentlySynced"`
	EstSkippedConditions     int64   `json:"estSkippedConditions" doc:"Number of items excluded by the auto-match conditions of the library or the plugin"`
	PlanFailure              *string `json:"planFailure" doc:"Why the job cannot request anything"`
	Sample                   []Delta `json:"sample" nullable:"false"`
}

// Delta is the change of one series or book.
type Delta struct {
	SeriesID   uuid.UUID             `json:"seriesId"`
	SeriesName string                `json:"seriesName"`
	BookID     *uuid.UUID            `json:"bookId" doc:"Null for a series"`
	BookTitle  *string               `json:"bookTitle"`
	Changes    map[string]ValueDelta `json:"changes" nullable:"false"`
	Skipped    []Skipped             `json:"skipped" nullable:"false" doc:"The field * stands for all fields"`
}

// ValueDelta is a value before and after.
type ValueDelta struct {
	Before any `json:"before"`
	After  any `json:"after"`
}

// Limits of a dry run: a person waits for the response.
const (
	dryRunTime  = 20 * time.Second
	dryRunSize  = 5
	dryRunLooks = 500 // series, and as many books, that are checked against conditions
)

// sampled is an item with its kind.
type sampled struct {
	kind string
	candidate
}

func (s *service) dryRun(ctx context.Context, library, id uuid.UUID, in *DryRunBody) (*DryRun, error) {
	size := int32(dryRunSize)
	if in.SampleSize != nil {
		size = *in.SampleSize
	}
	var bad check
	if in.ConfigOverride != nil {
		in.ConfigOverride.settle("configOverride", &bad)
	}
	if err := fault.InvalidFields(bad.bad); err != nil {
		return nil, err
	}
	j, err := getJob(ctx, s.Database, library, id)
	if err != nil {
		return nil, err
	}
	config := cmp.Or(in.ConfigOverride, &j.Config)
	p, err := db.Get[runnable](ctx, s.Database, selectNamed, config.plugin())
	if err != nil {
		return nil, err
	}
	out := &DryRun{Sample: []Delta{}}
	if err := config.plan(p.plugin(), library); err != nil {
		why := fault.From(err).Message
		out.PlanFailure = &why
		return out, nil
	}
	sample, err := out.choose(ctx, s.Runner, config, p, library, int(size))
	if err != nil {
		return nil, err
	}
	return out, out.ask(ctx, s.Runner, p.ID, config, sample)
}

// choose counts the items that the job would ask about, and picks a sample of each kind.
func (out *DryRun) choose(ctx context.Context, r *Runner, config *JobConfig, p *runnable, library uuid.UUID, size int) (sample []sampled, err error) {
	var b pgx.Batch
	kinds := config.kinds()
	counts := make([]*struct {
		Eligible int64 `db:"eligible"`
		NoID     int64 `db:"no_id"`
		Recent   int64 `db:"recent"`
		Searched int64 `db:"searched"` // how many of the eligible ones
	}, len(kinds))
	searched := make([][]item, len(kinds))
	some := make([][]candidate, len(kinds))
	var conditions json.RawMessage // of the library
	db.Value(&b, &conditions, "select coalesce(auto_match_conditions, 'null') from library where tenant_id = app.tenant() and id = $1", library)
	for i, kind := range kinds {
		db.One(&b, &counts[i], countOf(kind), config.arguments(&p.Plugin, library)...)
		db.All(&b, &searched[i], searchedOf(kind), append(config.arguments(&p.Plugin, library), dryRunLooks)...)
	}
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	b = pgx.Batch{}
	for i, kind := range kinds {
		n := counts[i]
		wanted, looked, err := r.wanted(ctx, kind, searched[i], conditions, p.AutoMatchConditions)
		if err != nil {
			return nil, err
		}
		var skipped int64
		if looked > 0 { // estimated from those
			skipped = n.Searched - int64(math.Round(float64(n.Searched)*float64(len(wanted))/float64(looked)))
		}
		out.TotalEligible += n.Eligible - skipped
		out.EstSkippedNoID += n.NoID
		out.EstSkippedRecentlySynced += n.Recent
		out.EstSkippedConditions += skipped
		db.All(&b, &some[i], sampleOf(kind), append(config.arguments(&p.Plugin, library), size, wanted)...)
	}
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, err
	}
	for at := range size {
		for i, kind := range kinds {
			if at < len(some[i]) && len(sample) < size {
				sample = append(sample, sampled{kind, some[i][at]})
			}
		}
	}
	return sample, nil
}

// ask asks the plugin about the sample. Items that do not fit the time limit are left out.
func (out *DryRun) ask(ctx context.Context, r *Runner, plugin uuid.UUID, config *JobConfig, sample []sampled) error {
	limited, cancel := context.WithTimeout(ctx, dryRunTime)
	defer cancel()
	deltas := make([]*Delta, len(sample))
	g, limited := errgroup.WithContext(limited)
	g.SetLimit(int(config.MaxConcurrency))
	for n := range sample {
		caller := *auth.CallerOf(ctx) // each transaction writes into its own copy
		g.Go(func() (err error) {
			if limited.Err() != nil {
				return nil
			}
			i := &sample[n]
			a, err := r.askAbout(db.In(limited, &caller), plugin, i.kind, &i.item, options{config.fields(i.kind), true})
			deltas[n], err = i.delta(a, err)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, d := range deltas {
		if d != nil {
			out.Sample = append(out.Sample, *d)
		}
	}
	return ctx.Err()
}

// delta describes the result or error for an item; nil if the item was deleted meanwhile.
func (i *sampled) delta(a *answer, err error) (*Delta, error) {
	f, ok := errors.AsType[*fault.Error](err)
	switch {
	case err != nil && (!ok || f.Code == fault.Internal):
		return nil, err
	case a == nil && f.Code == fault.NotFound:
		return nil, nil
	case a == nil:
		a = &answer{seriesTitle: i.Title}
	}
	out := &Delta{SeriesID: i.SeriesID, SeriesName: a.seriesTitle, BookTitle: a.bookTitle, Changes: map[string]ValueDelta{}, Skipped: []Skipped{}}
	if i.kind == "book" {
		out.BookID = &i.ID
	}
	switch {
	case f != nil:
		out.Skipped = append(out.Skipped, Skipped{"*", f.Message})
	case a.done == nil:
		out.Skipped = append(out.Skipped, Skipped{"*", a.why})
	default:
		for _, c := range a.done.DryRunReport.Changes {
			out.Changes[c.Field] = ValueDelta{c.Before, c.After}
		}
		out.Skipped = append(out.Skipped, a.done.SkippedFields...)
	}
	return out, nil
}
