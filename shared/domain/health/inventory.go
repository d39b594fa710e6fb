package health

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/db"
)

// Inventory counts what a tenant has; sizes are in bytes.
type Inventory struct {
	LibraryCount  int64     `json:"libraryCount"`
	SeriesCount   int64     `json:"seriesCount"`
	BookCount     int64     `json:"bookCount" doc:"Number of books, without those whose file is missing"`
	PageCount     int64     `json:"pageCount"`
	UserCount     int64     `json:"userCount"`
	TotalBookSize int64     `json:"totalBookSize" doc:"Total size of all books in bytes"`
	DatabaseSize  *int64    `json:"databaseSize" doc:"Size on disk in bytes; null if the database is shared with other tenants, or series are hidden from the caller"`
	Libraries     []Library `json:"libraries" nullable:"false"`
}

// Library counts what one library has.
type Library struct {
	ID          uuid.UUID `json:"id" db:"id" format:"uuid"`
	Name        string    `json:"name" db:"name"`
	SeriesCount int64     `json:"seriesCount" db:"series"`
	BookCount   int64     `json:"bookCount" db:"books"`
	TotalSize   int64     `json:"totalSize" db:"bytes"`
}

type row struct {
	Library
	Pages int64 `db:"pages"`
}

// count reads the counter rows of the tenant's libraries: one round trip, regardless of size. For callers from whom
// series are hidden it counts only the visible ones. It includes the size of the database only if no other tenant is in
// it: otherwise that would reveal something about others.
func count(ctx context.Context, d *db.DB) (*Inventory, error) {
	var b pgx.Batch
	var rows []row
	out := Inventory{Libraries: []Library{}}
	db.All(&b, &rows, `select l.id, l.name, app.total('series', l.id) as series, app.total('books', l.id) as books,
		  app.total('bytes', l.id) as bytes, app.total('pages', l.id) as pages
		from library l where l.tenant_id = app.tenant() order by l.name collate natural_order, l.id`)
	db.Value(&b, &out.UserCount, "select count(*) from account where tenant_id = app.tenant()")
	db.Value(&b, &out.DatabaseSize, "select case when not app.limited() and app.alone() then pg_database_size(current_database()) end")
	if err := d.Run(ctx, &b); err != nil {
		return nil, err
	}
	for _, r := range rows {
		out.Libraries = append(out.Libraries, r.Library)
		out.LibraryCount++
		out.SeriesCount += r.SeriesCount
		out.BookCount += r.BookCount
		out.PageCount += r.Pages
		out.TotalBookSize += r.TotalSize
	}
	return &out, nil
}

// Info is the version of the server.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// version returns the module version from the build stamp.
func version(stamp string) string {
	if stamp == "" || stamp == "(devel)" {
		return "dev"
	}
	return strings.TrimPrefix(stamp, "v")
}
