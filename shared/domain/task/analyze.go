package task

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// AddAnalysis queues a fresh analysis of one book, or finds the one that waits already.
func AddAnalysis(b *pgx.Batch, book, library, series uuid.UUID, id *uuid.UUID) error {
	return Add(b, Spec{Type: AnalyzeBook, Params: map[string]any{"bookIds": []uuid.UUID{book}, "force": true}, LibraryID: &library,
		SeriesID: &series, BookID: &book, DedupeKey: AnalyzeBook + ":" + book.String()}, id)
}
