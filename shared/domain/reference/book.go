package reference

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/owner"
)

// OfBook holds all references of a book.
type OfBook struct {
	ExternalIDs   []ExternalID `json:"externalIds" nullable:"false"`
	ExternalLinks []Link       `json:"externalLinks" nullable:"false"`
}

// QueueBook adds the selects of all references of a book to the batch.
func QueueBook(b *pgx.Batch, dst *OfBook, book uuid.UUID) {
	ids.queue(b, &dst.ExternalIDs, owner.Book, book)
	links.queue(b, &dst.ExternalLinks, owner.Book, book)
}
