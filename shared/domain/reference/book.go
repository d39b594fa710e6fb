package reference

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// OfBook is all that hangs on a book.
type OfBook struct {
	ExternalIDs   []ExternalID `json:"externalIds" nullable:"false"`
	ExternalLinks []Link       `json:"externalLinks" nullable:"false"`
}

// QueueBook asks for all that hangs on a book.
func QueueBook(b *pgx.Batch, dst *OfBook, book uuid.UUID) {
	ids.queue(b, &dst.ExternalIDs, ofBook, book)
	links.queue(b, &dst.ExternalLinks, ofBook, book)
}
