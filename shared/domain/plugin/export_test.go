package plugin

import "github.com/google/uuid"

// FieldsOf are the names of all fields of series or books.
var FieldsOf = fieldsOf

// DueSQL selects the due jobs; SettleJobs records how runs ended.
const DueSQL = dueSQL

var SettleJobs = settleJobs

// JobStatements returns a job's queries for the content of a library, with their arguments.
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
