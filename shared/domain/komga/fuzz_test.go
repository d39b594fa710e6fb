package komga

import (
	"testing"

	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Any condition from a client becomes a list, or is rejected as invalid.
func FuzzCondition(f *testing.F) {
	for _, seed := range []string{`{}`, `{"allOf":[{"readStatus":{"operator":"is","value":"READ"}},{"anyOf":[]}]}`, `{"title":{"operator":"isNull"}}`,
		`{"author":{"operator":"is","value":{"name":"x"}}}`, `{"releaseDate":{"operator":"after","dateTime":"2000-01-01T00:00:00Z"}}`,
		`{"releaseDate":{"operator":"isInTheLast","duration":"P1DT2H"}}`, `{"mediaProfile":{"operator":"isNot","value":"DIVINA"}}`,
		`{"deleted":{"operator":"isTrue"}}`, `{"mediaStatus":{"operator":"is","value":"READY"}}`, `{"collectionId":{"operator":"isNot","value":"x"}}`,
		`{"libraryId":{"operator":"is","value":"0190aaaa-0000-7000-8000-000000000000"}}`, `{"allOf":[{"allOf":[{"allOf":[{"allOf":[]}]}]}]}`, `[]`, `null`} {
		f.Add([]byte(seed), "a,b", "READ")
	}
	f.Fuzz(func(t *testing.T, tree []byte, names, status string) {
		refused := func(what string, err error) {
			t.Helper()
			if err != nil && !fault.Is(err, fault.BadRequest) {
				t.Errorf("%s of %s: %v", what, tree, err)
			}
		}
		w, err := SeriesFilter{Genre: []string{names}, Author: []string{names}, ReadStatus: []string{status}}.wanted(tree, nil, words(&names), httpapi.Sorting{})
		if refused("series", err); err == nil {
			_, err = series.List(w)
			refused("series", err)
		}
		_, err = BookFilter{Tag: []string{names}, MediaStatus: []string{status}}.list(tree, words(&names), httpapi.Sorting{Sort: lastRead})
		refused("books", err)
	})
}
