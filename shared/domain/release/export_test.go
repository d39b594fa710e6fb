package release

import "github.com/longbox/longbox/shared/platform/httpapi"

// Keep sets the maximum number of releases of the source and in total.
func (p *Poll) Keep(source, all int) { p.kept, p.keptOfAll = source, all }

// Trim sets how many excess releases are deleted at once.
func (p *Poll) Trim(step int) { p.trimStep = step }

// Batch sizes of Sweep.
const (
	SweepStep = sweepStep
	SweepGone = sweepGone
)

// For tests of plans.
const (
	TrackedSQL  = trackedSQL
	SubjectsSQL = subjectsSQL
)

// ListSQL returns the queries of a list, with their parameters.
func (f Filter) ListSQL() (page, total string, args []any) {
	sort, err := order(httpapi.Sorting{})
	if err != nil {
		panic(err)
	}
	where, args := f.where("")
	return pageSQL(where, sort, len(args)), totalSQL(where), args
}
