package pdfcache

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Stats are the statistics of stored pages of PDF documents.
type Stats struct {
	Handles Handles `json:"handles"`
	Pages   Pages   `json:"pages"`
}

// Pages are the page packs of PDF documents.
type Pages struct {
	BookCount         int64  `json:"bookCount"`
	CacheDir          string `json:"cacheDir" doc:"Location of the pages in the media bucket"`
	CacheEnabled      bool   `json:"cacheEnabled"`
	OldestFileAgeDays *int64 `json:"oldestFileAgeDays" doc:"Age of the oldest file in days; null if there are none"`
	TotalFiles        int64  `json:"totalFiles" doc:"Number of files, one per book"`
	TotalSizeBytes    int64  `json:"totalSizeBytes"`
	TotalSizeHuman    string `json:"totalSizeHuman"`
}

// Handles are the open documents: none.
type Handles struct {
	Capacity       int64    `json:"capacity" doc:"Always 0, like all values here: no documents are kept open"`
	CurrentSize    int64    `json:"currentSize"`
	Enabled        bool     `json:"enabled" doc:"Always false"`
	Entries        []Handle `json:"entries" nullable:"false" doc:"Always empty"`
	Evictions      int64    `json:"evictions"`
	Hits           int64    `json:"hits"`
	IdleEvictions  int64    `json:"idleEvictions"`
	IdleTTLSeconds int64    `json:"idleTtlSeconds"`
	Misses         int64    `json:"misses"`
	Opens          int64    `json:"opens"`
}

// Handle would be an open document.
type Handle struct {
	BookID      uuid.UUID `json:"bookId" format:"uuid"`
	Path        string    `json:"path"`
	AgeSeconds  int64     `json:"ageSeconds"`
	IdleSeconds int64     `json:"idleSeconds"`
	RenderCount int64     `json:"renderCount"`
}

func handles() Handles { return Handles{Entries: []Handle{}} }

// Closed is the number of documents that were closed.
type Closed struct {
	HandlesClosed int64 `json:"handlesClosed" doc:"Always 0"`
}

// pages counts the packs. A pack whose book is gone does not count as one of a PDF document; the scheduler deletes it.
func pages(ctx context.Context, d *db.DB, c Config) (*Pages, error) {
	found, err := db.Get[struct {
		Files  int64  `db:"files"`
		Bytes  int64  `db:"bytes"`
		Oldest *int64 `db:"oldest"`
	}](ctx, d, `select count(*) as files, coalesce(sum(p.size), 0)::bigint as bytes,
		extract(day from now() - min(p.created_at))::bigint as oldest
		from page_pack p join book b on b.tenant_id = p.tenant_id and b.id = p.book_id
		where p.tenant_id = app.tenant() and b.format = 'pdf'`)
	if err != nil {
		return nil, err
	}
	return &Pages{BookCount: found.Files, CacheDir: httpapi.TenantOf(ctx).ID.String() + "/pack/", CacheEnabled: c.Made != never,
		OldestFileAgeDays: found.Oldest, TotalFiles: found.Files, TotalSizeBytes: found.Bytes, TotalSizeHuman: human(found.Bytes)}, nil
}

// closeOne reports that no document of a book was open, or that there is no such book.
func closeOne(ctx context.Context, d *db.DB, book uuid.UUID) (*Closed, error) {
	var b pgx.Batch
	there := false
	db.Value(&b, &there, "select exists (select from book where tenant_id = app.tenant() and id = $1)", book)
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	if !there {
		return nil, fault.Missing("Book")
	}
	return &Closed{}, nil
}

// human formats a number of bytes for people: 1.5 MB.
func human(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	n, unit := float64(bytes), 0
	for n >= 1023.95 { // would be rounded to 1024.0
		n /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %cB", n, " KMGTPE"[unit])
}
