package release

import "github.com/longbox/longbox/shared/platform/httpapi"

// Keep bounds how many releases are kept of the source and of all.
func (p *Poll) Keep(source, all int) { p.kept, p.keptOfAll = source, all }

// Trim bounds how many releases too many go at once.
func (p *Poll) Trim(step int) { p.trimStep = step }

// Steps of a sweep.
const (
	SweepStep = sweepStep
	SweepGone = sweepGone
)

// For tests of plans.
const (
	TrackedSQL  = trackedSQL
	SubjectsSQL = subjectsSQL
)

// ListSQL are the queries of a list, with their parameters.
func (f Filter) ListSQL() (page, total string, args []any) {
	sort, err := order(httpapi.Sorting{})
	if err != nil {
		panic(err)
	}
	where, args := f.where("")
	return pageSQL(where, sort, len(args)), totalSQL(where), args
}
