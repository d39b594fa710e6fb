package webpub

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	booklist "github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/platform/db"
)

// book holds the data of a manifest.
type book struct {
	server  *page.Server
	address string // URL of the book
	index   *page.Index
	row     *row
	size    int // bytes of the document, as far as its items were counted
}

type row struct {
	Title     string    `db:"title"`
	Series    string    `db:"series"`
	Number    *float64  `db:"number"`
	Direction string    `db:"direction"`
	Settled   bool      `db:"settled"` // Direction is that of a locked series or of the analysed file
	Summary   string    `db:"summary"`
	Publisher string    `db:"publisher"`
	Language  string    `db:"language"`
	ISBN      string    `db:"isbn"`
	Year      *int32    `db:"year"`
	Month     *int32    `db:"month"`
	Day       *int32    `db:"day"`
	Authors   []author  `db:"authors"`
	Genres    []string  `db:"genres"`
	UpdatedAt time.Time `db:"updated_at"`
	Widths    []int     `db:"widths"`
	Heights   []int     `db:"heights"`
}

type author struct{ Name, Role string }

// queue adds the selects of a book's data to a batch.
func (b *book) queue(id uuid.UUID) *pgx.Batch {
	var batch pgx.Batch
	page.Queue(&batch, &b.index, id)
	db.One(&batch, &b.row, `select b.title, s.title as series, b.number, `+booklist.DirectionSQL+` as direction,
		coalesce(b.reading_direction, case when 'readingDirection' = any(s.locks) then s.reading_direction end) is not null as settled,
		coalesce(m.metadata ->> 'summary', '') as summary, coalesce(m.metadata ->> 'publisher', '') as publisher,
		coalesce(m.metadata ->> 'languageIso', '') as language, coalesce(btrim(split_part(m.metadata ->> 'isbns', ',', 1), '[]" '), '') as isbn,
		(m.metadata ->> 'year')::integer as year, (m.metadata ->> 'month')::integer as month, (m.metadata ->> 'day')::integer as day,
		coalesce(nullif(m.metadata -> 'authors', 'null'), '[]') as authors,
		array(select g.name from book_genre x join genre g on g.tenant_id = x.tenant_id and g.id = x.genre_id
		  where x.tenant_id = app.tenant() and x.book_id = b.id order by g.name collate natural_order) as genres, b.updated_at,
		coalesce(p.widths, '{}') as widths, coalesce(p.heights, '{}') as heights
		from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
		join series s on s.tenant_id = b.tenant_id and s.id = b.series_id
		left join book_metadata m on m.tenant_id = b.tenant_id and m.book_id = b.id
		left join page_index p on p.tenant_id = b.tenant_id and p.book_id = b.id
		where b.tenant_id = app.tenant() and b.id = $1 and b.deleted_at is null`, id)
	return &batch
}

func (b *book) isEPUB() bool { return strings.EqualFold(b.index.Format, "epub") }

// published returns the publication date, if the year is known. Clients require a full date: an unknown or invalid
// month or day becomes the first.
func (r *row) published() string {
	if r.Year == nil || *r.Year < 1 || *r.Year > 9999 {
		return ""
	}
	return *booklist.Released(r.Year, r.Month, r.Day)
}

// by returns the names of the people with one of the roles.
func (r *row) by(roles ...string) (names []string) {
	for _, a := range r.Authors {
		for _, role := range roles {
			if a.Role == role || a.Role == "" && role == "author" {
				names = append(names, a.Name)
			}
		}
	}
	return names
}
