package export

// Statements returns the queries of a task's batches, with all fields.
func Statements() (series, books string) {
	every := func(all []field) (keys []string) {
		for _, f := range all {
			keys = append(keys, f.Key)
		}
		return keys
	}
	return seriesSQL(chosen(seriesFields, every(seriesFields))), booksSQL(chosen(bookFields, every(bookFields)))
}

// Batch is the number of rows per query.
const Batch = batch

// Harmless is for tests.
var Harmless = harmless

// Refusal is what a request hears whose export was not created although the room was free a moment before.
func Refusal() error { return (&room{MaxKept: 1, MaxRuns: 1, MaxUsed: 1}).refusal(0) }
