package plugin

import "github.com/google/uuid"

// FieldsOf are the names of all fields of series or books.
var FieldsOf = fieldsOf

// DueSQL selects the jobs that are due; SettleJobs notes how they ended.
const DueSQL = dueSQL

var SettleJobs = settleJobs

// JobStatements are the queries of a job for what is in a library, with their arguments.
func JobStatements(library uuid.UUID) map[string][]any {
	out := map[string][]any{}
	for _, kind := range []string{"series", "book"} {
		args := (&JobConfig{ExistingSourceIDsOnly: true}).arguments(&Plugin{Name: "test"}, library)
		out[nextOf(kind)] = append(args[:5:5], "/l1", atOnce)
		out[countOf(kind)] = args
		out[sampleOf(kind)] = append(args[:5:5], dryRunSize, nil)
		out[searchedOf(kind)] = append(args[:5:5], dryRunLooks)
	}
	return out
}
