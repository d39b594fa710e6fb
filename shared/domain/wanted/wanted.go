package wanted

import (
	"time"

	"github.com/google/uuid"
)

// Entry is a series or a book that the caller wants to read.
type Entry struct {
	ID       uuid.UUID  `json:"id" db:"id"`
	ItemType string     `json:"itemType" db:"item_type" enum:"series,book"`
	SeriesID *uuid.UUID `json:"seriesId" db:"series_id" doc:"Of a series; null of a book"`
	BookID   *uuid.UUID `json:"bookId" db:"book_id" doc:"Of a book; null of a series"`
	AddedAt  time.Time  `json:"addedAt" db:"added_at"`
}

// Item is what is added: a series or a book.
type Item struct {
	SeriesID *uuid.UUID `json:"seriesId,omitempty" format:"uuid" nullable:"true" doc:"Either this or bookId"`
	BookID   *uuid.UUID `json:"bookId,omitempty" format:"uuid" nullable:"true" doc:"Either this or seriesId"`
}

// Items are what is added; ids that nothing has are left out.
type Items struct {
	SeriesIDs []uuid.UUID `json:"seriesIds,omitempty" maxItems:"1000"`
	BookIDs   []uuid.UUID `json:"bookIds,omitempty" maxItems:"1000"`
}

// Added says how many are new, and how many were there before.
type Added struct {
	Added          int64 `json:"added" db:"added"`
	AlreadyPresent int64 `json:"alreadyPresent" db:"present"`
}
