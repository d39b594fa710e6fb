package owner

import (
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/events"
)

// Owner is what something hangs on: a series or a book.
type Owner struct {
	Table            string
	Path             string // of its operations, and what several are called
	What             string // in messages
	There            string // SQL: the row o is there
	Series           string // SQL: the series of the row o
	Reading, Writing string // permissions
}

// There are two.
var (
	Series = Owner{Table: "series", Path: "series", What: "Series", There: "true", Series: "o.id", Reading: auth.SeriesRead, Writing: auth.SeriesWrite}
	Book   = Owner{Table: "book", Path: "books", What: "Book", There: "o.deleted_at is null", Series: "o.series_id", Reading: auth.BooksRead, Writing: auth.BooksWrite}
)

// SQL is a text with {o} for the table of the owner, {id} for the column that names it in others, {series} for the
// series of the row o, {there}, which says that the row o is there, and {is}, which says that it is the owner $1. more
// are pairs of a further placeholder and its text, which may hold these.
func (o Owner) SQL(text string, more ...string) string {
	there := "o.tenant_id = app.tenant() and " + o.There
	return strings.NewReplacer("{o}", o.Table, "{id}", o.Table+"_id", "{series}", o.Series, "{there}", there, "{is}", there+" and o.id = $1").
		Replace(strings.NewReplacer(more...).Replace(text))
}

// Updated is the event that says which field of the owner with this id, of a series and a library, has changed.
func (o Owner) Updated(id, series, library uuid.UUID, field string) events.Event {
	if o == Book {
		return events.BookUpdated(events.Book{ID: id, SeriesID: series, LibraryID: library}, field)
	}
	return events.SeriesUpdated(events.Series{ID: id, LibraryID: library}, field)
}
