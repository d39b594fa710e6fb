package export

// Statements are what a task reads batches by, with all fields.
func Statements() (series, books string) {
	every := func(all []field) (keys []string) {
		for _, f := range all {
			keys = append(keys, f.Key)
		}
		return keys
	}
	return seriesSQL(chosen(seriesFields, every(seriesFields))), booksSQL(chosen(bookFields, every(bookFields)))
}

// Batch is how many rows a task reads at once.
const Batch = batch

// Harmless is for tests.
var Harmless = harmless
