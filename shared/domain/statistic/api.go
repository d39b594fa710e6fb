package statistic

import (
	"cmp"
	"context"
	"time"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// span is the default length of the period.
const span = 90 * 24 * time.Hour

// Input selects the statistics.
type Input struct {
	From        time.Time `query:"from" doc:"Start of the period; defaults to 90 days before to, as does the first moment of the year 1"`
	To          time.Time `query:"to" doc:"End of the period, exclusive; defaults to now"`
	Granularity string    `query:"granularity" enum:"day,week,month" default:"day"`
	SeriesLimit int       `query:"seriesLimit" minimum:"1" maximum:"50" default:"10"`
	Sort        string    `query:"sort" enum:"time,pages,completions" default:"time" doc:"Order of the series: by time, pages or finished books"`
}

// Routes registers the operations on the caller's reading statistics.
func Routes(a *httpapi.API, d *db.DB) {
	op := func(path, id, summary string) httpapi.Op {
		return httpapi.Op{Method: "GET", Path: "/api/v1/reading-stats" + path, ID: id, Summary: summary, Tag: "Reading statistics", Permission: auth.ProgressRead}
	}
	httpapi.Register(a, op("", "getReadingStats", "Get the caller's reading statistics: totals, periods, series, formats and devices"),
		func(ctx context.Context, in *Input) (*Statistics, error) {
			to := in.To
			if to.IsZero() {
				to = time.Now()
			}
			from := in.From
			if from.IsZero() {
				from = to.Add(-span)
			}
			for field, t := range map[string]time.Time{"from": from, "to": to} {
				if y := t.UTC().Year(); y < 1 || y > 9998 {
					return nil, fault.Invalid(field, "must be in the years 1 to 9998")
				}
			}
			if from.After(to) {
				return nil, fault.Invalid("from", "must not be after to")
			}
			return statistics(ctx, d, from.UTC(), to.UTC(), in.Granularity, in.Sort, cmp.Or(in.SeriesLimit, 10))
		})
	httpapi.Register(a, op("/coverage", "getReadingCoverage", "Get the first and last time of the caller's reading sessions"),
		func(ctx context.Context, _ *struct{}) (*Coverage, error) { return coverage(ctx, d) })
}
