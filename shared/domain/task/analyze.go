package task

import "github.com/google/uuid"

// Analysis describes a fresh analysis of one book; its target is OfBook or OfNewBook.
func Analysis(book uuid.UUID) Spec {
	return Spec{Type: AnalyzeBook, Params: map[string]any{"bookIds": []uuid.UUID{book}, "force": true}, DedupeKey: AnalyzeBook + ":"}
}

// Retitling describes naming series after their folders. A dry run is another task than one that changes titles.
func Retitling(dryRun bool) Spec {
	s := Spec{Type: ReprocessTitles, Params: map[string]any{"dryRun": dryRun}, DedupeKey: ReprocessTitles + ":"}
	if dryRun {
		s.DedupeKey += "dry:"
	}
	return s
}
