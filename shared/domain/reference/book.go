package reference

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// OfBook holds all references of a book.
type OfBook struct {
	ExternalIDs   []ExternalID `json:"externalIds" nullable:"false"`
	ExternalLinks []Link       `json:"externalLinks" nullable:"false"`
}

// QueueBook adds the selects of all references of a book to the batch.
func QueueBook(b *pgx.Batch, dst *OfBook, book uuid.UUID) {
	ids.queue(b, &dst.ExternalIDs, ofBook, book)
	links.queue(b, &dst.ExternalLinks, ofBook, book)
}
