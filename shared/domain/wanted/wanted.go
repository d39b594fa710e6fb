package wanted

import (
	"time"

	"github.com/google/uuid"
)

// Entry is a series or book on the caller's want-to-read list.
type Entry struct {
	ID       uuid.UUID  `json:"id" db:"id"`
	ItemType string     `json:"itemType" db:"item_type" enum:"series,book"`
	SeriesID *uuid.UUID `json:"seriesId" db:"series_id" doc:"Id of the series; null for a book"`
	BookID   *uuid.UUID `json:"bookId" db:"book_id" doc:"Id of the book; null for a series"`
	AddedAt  time.Time  `json:"addedAt" db:"added_at"`
}

// Item is a series or book to add.
type Item struct {
	SeriesID *uuid.UUID `json:"seriesId,omitempty" format:"uuid" nullable:"true" doc:"Exactly one of seriesId and bookId is required"`
	BookID   *uuid.UUID `json:"bookId,omitempty" format:"uuid" nullable:"true" doc:"Exactly one of seriesId and bookId is required"`
}

// Items are series and books to add; unknown ids are ignored.
type Items struct {
	SeriesIDs []uuid.UUID `json:"seriesIds,omitempty" maxItems:"1000"`
	BookIDs   []uuid.UUID `json:"bookIds,omitempty" maxItems:"1000"`
}

// Added counts the new entries, and those that were on the list before.
type Added struct {
	Added          int64 `json:"added" db:"added"`
	AlreadyPresent int64 `json:"alreadyPresent" db:"present"`
}
