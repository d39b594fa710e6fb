package progress

import (
	"context"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
)

// heirs maps books that no longer exist, because they turned out to be other books, to those books.
func heirs(ctx context.Context, d *db.DB, books []uuid.UUID) (map[uuid.UUID]uuid.UUID, error) {
	type heir struct {
		ID   uuid.UUID `db:"id"`
		Book uuid.UUID `db:"book_id"`
	}
	rows, err := db.List[heir](ctx, d, "select id, book_id from book_heir where tenant_id = app.tenant() and id = any($1)", books)
	if err != nil {
		return nil, err
	}
	out := make(map[uuid.UUID]uuid.UUID, len(rows))
	for _, r := range rows {
		out[r.ID] = r.Book
	}
	return out, nil
}

// orHeir calls do for a book or, if that is NotFound, for its heir: a device that was offline knows only the old id.
func orHeir(ctx context.Context, d *db.DB, id uuid.UUID, do func(id uuid.UUID) error) error {
	missing := do(id)
	if !fault.Is(missing, fault.NotFound) {
		return missing
	}
	found, err := heirs(ctx, d, []uuid.UUID{id})
	if err != nil {
		return err
	}
	if heir, ok := found[id]; ok {
		return do(heir)
	}
	return missing
}

// recordAll is record including books that have heirs. Sessions that are sent again are not logged again.
func recordAll(ctx context.Context, d *db.DB, sessions []Session) (*Recorded, error) {
	out, err := record(ctx, d, sessions)
	if err != nil {
		return nil, err
	}
	missing := map[uuid.UUID]bool{} // ids of sessions
	for _, r := range out.Rejected {
		missing[r.ID] = missing[r.ID] || r.Reason == bookNotFound
	}
	var books []uuid.UUID
	for _, s := range sessions {
		if missing[s.ID] {
			books = append(books, s.BookID)
		}
	}
	if len(books) == 0 {
		return out, nil
	}
	found, err := heirs(ctx, d, books)
	if err != nil || len(found) == 0 {
		return out, err
	}
	for i, s := range sessions {
		if heir, ok := found[s.BookID]; ok {
			sessions[i].BookID = heir
		}
	}
	return record(ctx, d, sessions)
}
