package task

import "github.com/google/uuid"

// Analysis describes a fresh analysis of one book; its target is OfBook or OfNewBook.
func Analysis(book uuid.UUID) Spec {
	return Spec{Type: AnalyzeBook, Params: map[string]any{"bookIds": []uuid.UUID{book}, "force": true}, DedupeKey: AnalyzeBook + ":"}
}
