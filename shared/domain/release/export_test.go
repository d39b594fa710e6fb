package release

import "github.com/longbox/longbox/shared/platform/httpapi"

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
