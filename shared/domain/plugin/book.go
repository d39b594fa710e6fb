package plugin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// bookMetadata is a plugin's metadata of a book.
type bookMetadata struct {
	common
	ReleaseDate    *string  `json:"releaseDate"`
	Subtitle       *string  `json:"subtitle"`
	BookType       *string  `json:"bookType"`
	Volume         *float64 `json:"volume"`
	Chapter        *float64 `json:"chapter"`
	ISBN           *string  `json:"isbn"`
	ISBNs          []string `json:"isbns"`
	Edition        *string  `json:"edition"`
	OriginalTitle  *string  `json:"originalTitle"`
	OriginalYear   *float64 `json:"originalYear"`
	Translator     *string  `json:"translator"`
	SeriesPosition *float64 `json:"seriesPosition"`
	SeriesTotal    *float64 `json:"seriesTotal"`
	Subjects       []string `json:"subjects"`
	Covers         []struct {
		URL  string `json:"url"`
		Size string `json:"size"`
	} `json:"covers"`
	Awards []struct {
		Name     string   `json:"name"`
		Year     *float64 `json:"year"`
		Category *string  `json:"category"`
		Won      bool     `json:"won"`
	} `json:"awards"`
}

// cover returns the cover's URL: coverUrl, else the first large one of covers, else the first one.
func (m *bookMetadata) cover() *string {
	if len(m.Covers) == 0 || m.CoverURL != nil && *m.CoverURL != "" {
		return m.CoverURL
	}
	best := 0
	for i, c := range slices.Backward(m.Covers) {
		if c.Size == "large" {
			best = i
		}
	}
	return &m.Covers[best].URL
}

// aBook is a book with its references.
type aBook struct {
	*book.Details
	elsewhere reference.OfBook
}

// bookEdit is an edit of a book.
type bookEdit struct {
	*aBook
	shared
	said    bookMetadata
	body    book.MetadataBody
	showing []events.Series // those whose cover is that of the book
}

// now returns the current metadata.
func (e *bookEdit) now() *book.Metadata {
	if e.Metadata == nil {
		return &book.Metadata{}
	}
	return e.Metadata
}

func (e *bookEdit) propose(p *Plugin) []FieldPreview {
	now, m, body := e.now(), &e.said, &e.body
	all := &proposals{plugin: p, locks: now.Locks, suffix: "Lock"}
	all.text(fieldNamed("title"), &e.Title, m.Title, 1000, &body.Title)
	all.text(fieldNamed("subtitle"), now.Subtitle, m.Subtitle, 1000, &body.Subtitle)
	all.text(field{"originalTitle", "original_title", "originalTitle"}, now.OriginalTitle, m.OriginalTitle, 1000, &body.OriginalTitle)
	all.text(fieldNamed("publisher"), now.Publisher, m.Publisher, 500, &body.Publisher)
	all.text(fieldNamed("edition"), now.Edition, m.Edition, 500, &body.Edition)
	all.text(fieldNamed("translator"), now.Translator, m.Translator, 500, &body.Translator)
	addTo(all, fieldNamed("summary"), now.Summary, prose(m.Summary), "", &body.Summary)
	all.language(field{"languageIso", "language", "languageIso"}, now.LanguageISO, m.Language, &body.LanguageISO)
	all.among(field{"bookType", "book_type", "bookType"}, now.BookType, m.BookType, bookTypes, &body.BookType)
	m.proposeDate(all, now, body)
	all.whole(field{"originalYear", "original_year", "originalYear"}, now.OriginalYear, m.OriginalYear, 1, 9999, &body.OriginalYear)
	all.whole(fieldNamed("volume"), e.Volume, m.Volume, 0, 9_999_999, &body.Volume)
	all.whole(field{"seriesTotal", "series_position", "seriesTotal"}, now.SeriesTotal, m.SeriesTotal, 0, 9_999_999, &body.SeriesTotal)
	all.fraction(fieldNamed("chapter"), e.Chapter, m.Chapter, &body.Chapter)
	all.fraction(field{"seriesPosition", "series_position", "seriesPosition"}, now.SeriesPosition, m.SeriesPosition, &body.SeriesPosition)
	people := m.peopleBeside(now)
	all.add(field{"authors", "authors", "authorsJson"}, authorsOf(now.Authors), people, "", func() { body.Authors = set(&people) })
	subjects := names(m.Subjects, 200, 500)
	why := lost(len(m.Subjects), len(subjects))
	all.add(fieldNamed("subjects"), now.Subjects, subjects, why, func() { body.Subjects = set(&subjects) })
	all.terms("genres", e.Genres, m.Genres, 200, &e.genres)
	all.terms("tags", e.Tags, m.Tags, 500, &e.tags)
	m.proposeAwards(all, now, body)
	m.proposeISBNs(all, now, body)
	all.services(&m.common, e.elsewhere.ExternalLinks, e.elsewhere.ExternalIDs, &e.given)
	all.cover(m.cover(), &e.cover)
	return all.fields
}

var bookTypes = strings.Fields("comic manga novel novella anthology artbook oneshot omnibus graphic_novel magazine")

// proposeDate adds year, month and day. They are written in this order: month and day depend on the year.
func (m *bookMetadata) proposeDate(all *proposals, now *book.Metadata, body *book.MetadataBody) {
	year, month, day := m.released(now)
	y, why := whole(year, 1, 9999)
	all.add(fieldNamed("year"), now.Year, y, why, func() {
		body.Year = set(y)
		if now.Year != nil {
			outdated(&body.Month, now.Month, month, now.Locks["monthLock"])
			outdated(&body.Day, now.Day, day, now.Locks["dayLock"])
		}
	})
	mo, why := whole(month, 1, 12)
	all.add(field{"month", "year", "month"}, now.Month, mo, why, func() {
		body.Month = set(mo)
		if now.Month != nil {
			outdated(&body.Day, now.Day, day, now.Locks["dayLock"])
		}
	})
	all.whole(field{"day", "year", "day"}, now.Day, day, 1, 31, &body.Day)
}

// outdated clears the month or day if the new date does not contain it and it is not locked: it belongs to the old
// date.
func outdated(into *httpapi.Optional[int32], current *int32, said *float64, locked bool) {
	if current != nil && !locked && (said == nil || *said != float64(*current)) {
		*into = httpapi.Optional[int32]{Set: true}
	}
}

// released returns the release date from year and releaseDate (2001-02-15, optionally with a time, 2001-02 or 2001).
// Month and day count only with the year that the book has or gets.
func (m *bookMetadata) released(now *book.Metadata) (year, month, day *float64) {
	year = m.Year
	if m.ReleaseDate == nil {
		return year, nil, nil
	}
	text, _, _ := strings.Cut(*m.ReleaseDate, "T")
	for n, layout := range []string{"2006", "2006-01", "2006-01-02"} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		y, mo, d := float64(at.Year()), float64(at.Month()), float64(at.Day())
		if year == nil {
			year = &y
		}
		stays := func(locked bool, current *int32, said float64) bool {
			return locked && (current == nil || float64(*current) != said)
		}
		if n == 0 || *year != y || stays(now.Locks["yearLock"], now.Year, y) {
			return year, nil, nil
		}
		if n == 1 || stays(now.Locks["monthLock"], now.Month, mo) {
			return year, &mo, nil
		}
		return year, &mo, &d
	}
	return year, nil, nil
}

// peopleBeside returns the plugin's people together with those who stay: people with a locked role, and the translators
// if authors names none, as they are a field of their own. It returns nil if the plugin names nobody else.
func (m *bookMetadata) peopleBeside(now *book.Metadata) []book.AuthorBody {
	people := m.people()
	stays := func(role string) bool {
		return now.Locks[strings.Replace(role, "cover_artist", "coverArtist", 1)+"Lock"]
	}
	translated := slices.ContainsFunc(people, func(a book.AuthorBody) bool { return a.Role == "translator" })
	people = slices.DeleteFunc(people, func(a book.AuthorBody) bool { return stays(a.Role) })
	if len(people) == 0 {
		return nil
	}
	for _, a := range authorsOf(now.Authors) {
		if stays(a.Role) || a.Role == "translator" && !translated {
			people = append(people, a)
		}
	}
	return people
}

func (m *bookMetadata) proposeAwards(all *proposals, now *book.Metadata, body *book.MetadataBody) {
	var awards []book.AwardBody
	for _, a := range m.Awards {
		if name, _ := line(&a.Name, 500); name != nil && len(awards) < 100 {
			category, _ := line(a.Category, 500)
			year, _ := whole(a.Year, 1, 9999)
			awards = append(awards, book.AwardBody{Name: *name, Category: category, Year: year, Won: a.Won})
		}
	}
	current := []book.AwardBody{}
	for _, a := range now.Awards {
		current = append(current, book.AwardBody(a))
	}
	why := lost(len(m.Awards), len(awards))
	all.add(field{"awards", "awards", "awardsJson"}, current, awards, why, func() { body.Awards = set(&awards) })
}

func (m *bookMetadata) proposeISBNs(all *proposals, now *book.Metadata, body *book.MetadataBody) {
	numbers := m.ISBNs
	if m.ISBN != nil {
		numbers = append([]string{*m.ISBN}, numbers...)
	}
	isbns, why := book.ISBNs(numbers)
	addTo(all, field{"isbns", "isbn", "isbns"}, now.ISBNs, isbns, why, &body.ISBNs)
}

func (e *bookEdit) kind() string { return "book" }

func (e *bookEdit) metadata() (any, *common) { return &e.said, &e.said.common }

func (e *bookEdit) queue(b *pgx.Batch, source string, _ []string) (err error) {
	locks := e.now().Locks
	if e.renaming, err = book.QueueFill(b, e.ID, lockedOf(locks), &e.body); err != nil {
		return err
	}
	if e.genres != nil {
		taxonomy.QueueReplaceOfBook(b, "genre", e.ID, e.genres)
	}
	if e.tags != nil {
		taxonomy.QueueReplaceOfBook(b, "tag", e.ID, e.tags)
	}
	reference.QueueGivenBook(b, e.ID, &e.given)
	if e.picture != nil {
		cover.QueueGivenBook(b, &e.kept, e.ID, e.picture, source, !locks["coverLock"])
		cover.QueueShowing(b, []uuid.UUID{e.ID}, &e.showing)
	}
	return nil
}

func (e *bookEdit) events(_ uuid.UUID, fields []string) []events.Event {
	out := []events.Event{events.BookUpdated(events.Book{ID: e.ID, SeriesID: e.SeriesID, LibraryID: e.LibraryID}, fields...)}
	if slices.Contains(fields, "cover") && !e.now().Locks["coverLock"] {
		out = append(out, cover.Told(events.BookEntity, e.ID, e.LibraryID, e.showing)...)
	}
	return out
}

// bookEdit is a loader.
func (r *Runner) bookEdit(ctx context.Context, plugin, id uuid.UUID) (*runnable, edit, error) {
	var b pgx.Batch
	var p *runnable
	var d aBook
	queueRunnable(&b, &p, plugin)
	load := book.QueueDetails(&b, id, false)
	reference.QueueBook(&b, &d.elsewhere, id)
	if err := r.Database.Run(ctx, &b); err != nil {
		return nil, nil, err
	}
	var err error
	if d.Details, err = load(); err != nil {
		return nil, nil, err
	}
	if err := p.plugin().usable(); err != nil {
		return nil, nil, err
	}
	return p, &bookEdit{aBook: &d}, p.about("book", d.LibraryID)
}

func (s *service) bookRoutes(a *httpapi.API) {
	op := httpapi.Group{Path: "/api/v1/books/{id}/metadata", Tag: "Plugins"}.For(auth.BooksWrite)
	s.previewRoute(a, op("POST", "/preview", "previewBookMetadata",
		"Preview the metadata of a plugin for a book, with the effect on each field"), s.bookEdit)
	s.applyRoute(a, op("POST", "/apply", "applyBookMetadata",
		"Apply the metadata of a plugin to a book; fields that are locked or that the plugin may not write are skipped"), s.bookEdit)
}
