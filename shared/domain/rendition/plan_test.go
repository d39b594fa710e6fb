package rendition

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// The cover of a library or list is found without reading all books or series.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(*httpapi.API, *db.DB) {})
	me := s.User(t, "one", "reader")
	library, _ := s.Crowd(t, s.One, me.ID)
	for name, q := range map[string]struct {
		sql string
		id  uuid.UUID
	}{"library": {libraryCover, library}, "collection": {collectionCover, uuid.New()}, "want to read": {wantedSeriesCover, uuid.Nil},
		"read list": {readListCover, uuid.New()}, "books to read": {wantedBookCover, uuid.Nil}} {
		scanned, plan := s.Scans(t, me, q.sql, q.id)
		for _, table := range []string{"book", "series"} { // the others are empty
			if slices.Contains(scanned, table) {
				t.Errorf("%s reads all of %s: %s", name, table, plan)
			}
		}
	}
}
