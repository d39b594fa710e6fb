package plugin

import (
	"context"
	"errors"
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

// bookWrites collects what to write to a book.
type bookWrites struct {
	body  book.MetadataBody
	given reference.Given
	cover string // URL

	genres, tags []string // nil: unchanged
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

// propose compares a book with a plugin's metadata. The write functions of the returned fields fill w.
func (m *bookMetadata) propose(p *Plugin, d *aBook, w *bookWrites) []FieldPreview {
	now := d.Metadata
	if now == nil {
		now = &book.Metadata{}
	}
	all := &proposals{plugin: p, locks: now.Locks, suffix: "Lock"}
	body := &w.body
	title, why := line(m.Title, 1000)
	all.add("title", "title", "title", d.Title, title, why, func() { body.Title = set(title) })
	for _, f := range []struct {
		field, permission string
		current, said     *string
		most              int
		into              *httpapi.Optional[string]
	}{{"subtitle", "subtitle", now.Subtitle, m.Subtitle, 1000, &body.Subtitle}, {"originalTitle", "original_title", now.OriginalTitle, m.OriginalTitle, 1000, &body.OriginalTitle},
		{"publisher", "publisher", now.Publisher, m.Publisher, 500, &body.Publisher}, {"edition", "edition", now.Edition, m.Edition, 500, &body.Edition},
		{"translator", "translator", now.Translator, m.Translator, 500, &body.Translator}} {
		text, why := line(f.said, f.most)
		all.add(f.field, f.permission, f.field, f.current, text, why, func() { *f.into = set(text) })
	}
	summary := prose(m.Summary)
	all.add("summary", "summary", "summary", now.Summary, summary, "", func() { body.Summary = set(summary) })
	spoken, why := tongue(m.Language)
	all.add("languageIso", "language", "languageIso", now.LanguageISO, spoken, why, func() { body.LanguageISO = set(spoken) })
	kind, why := among(m.BookType, "comic", "manga", "novel", "novella", "anthology", "artbook", "oneshot", "omnibus", "graphic_novel", "magazine")
	all.add("bookType", "book_type", "bookType", now.BookType, kind, why, func() { body.BookType = set(kind) })
	year, month, day := m.released(now)
	for _, f := range []struct {
		field, permission string
		current           *int32
		said              *float64
		from, to          int32
		into              *httpapi.Optional[int32]
	}{{"year", "year", now.Year, year, 1, 9999, &body.Year}, {"month", "year", now.Month, month, 1, 12, &body.Month},
		{"day", "year", now.Day, day, 1, 31, &body.Day}, {"originalYear", "original_year", now.OriginalYear, m.OriginalYear, 1, 9999, &body.OriginalYear},
		{"volume", "volume", d.Volume, m.Volume, 0, 9_999_999, &body.Volume}, {"seriesTotal", "series_position", now.SeriesTotal, m.SeriesTotal, 0, 9_999_999, &body.SeriesTotal}} {
		n, why := whole(f.said, f.from, f.to)
		all.add(f.field, f.permission, f.field, f.current, n, why, func() {
			*f.into = set(n)
			if f.current == nil {
				return
			}
			switch f.field { // in this order: month and day depend on the year
			case "year":
				outdated(&body.Month, now.Month, month, now.Locks["monthLock"])
				outdated(&body.Day, now.Day, day, now.Locks["dayLock"])
			case "month":
				outdated(&body.Day, now.Day, day, now.Locks["dayLock"])
			}
		})
	}
	for _, f := range []struct {
		field, permission string
		current, said     *float64
		into              *httpapi.Optional[float64]
	}{{"chapter", "chapter", d.Chapter, m.Chapter, &body.Chapter}, {"seriesPosition", "series_position", now.SeriesPosition, m.SeriesPosition, &body.SeriesPosition}} {
		n, why := fraction(f.said)
		all.add(f.field, f.permission, f.field, f.current, n, why, func() { *f.into = set(n) })
	}
	people := m.peopleBeside(now)
	all.add("authors", "authors", "authorsJson", authorsOf(now.Authors), people, "", func() { body.Authors = set(&people) })
	subjects := names(m.Subjects, 200, 500)
	all.add("subjects", "subjects", "subjects", now.Subjects, subjects, lost(len(m.Subjects), len(subjects)), func() { body.Subjects = set(&subjects) })
	genres, tags := names(m.Genres, 200, 100), names(m.Tags, 500, 100)
	currentGenres, currentTags := termNames(d.Genres), termNames(d.Tags)
	all.add("genres", "genres", "genres", currentGenres, spelled(genres, currentGenres), lost(len(m.Genres), len(genres)), func() { w.genres = genres })
	all.add("tags", "tags", "tags", currentTags, spelled(tags, currentTags), lost(len(m.Tags), len(tags)), func() { w.tags = tags })
	m.proposeOthers(all, now, &d.elsewhere, w)
	return all.fields
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

// proposeOthers adds awards, ISBNs and references.
func (m *bookMetadata) proposeOthers(all *proposals, now *book.Metadata, elsewhere *reference.OfBook, w *bookWrites) {
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
	all.add("awards", "awards", "awardsJson", current, awards, lost(len(m.Awards), len(awards)), func() { w.body.Awards = set(&awards) })
	numbers, said := m.ISBNs, ""
	if m.ISBN != nil {
		numbers = append([]string{*m.ISBN}, numbers...)
	}
	isbns, why := book.ISBNs(numbers)
	if isbns == nil && len(numbers) > 0 {
		said = why
	}
	all.add("isbns", "isbn", "isbns", now.ISBNs, isbns, said, func() { w.body.ISBNs = set(isbns) })
	links, currentLinks := m.links(), linksOf(elsewhere.ExternalLinks)
	all.add("externalLinks", "links", "", currentLinks, within(links, currentLinks), lost(len(m.Links), len(links)), func() { w.given.Links = links })
	ids, currentIDs := m.ids(), idsOf(elsewhere.ExternalIDs)
	all.add("externalIds", "external_ids", "", currentIDs, within(ids, currentIDs), "", func() { w.given.IDs = ids })
	m.proposeCover(all, m.cover(), &w.cover)
}

// bookSubject reads a plugin and a book, and checks that the plugin is for the book.
func (r *Runner) bookSubject(ctx context.Context, plugin, id uuid.UUID) (*runnable, *aBook, error) {
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
	return p, &d, p.about("book", d.LibraryID)
}

func (s *service) bookRoutes(a *httpapi.API) {
	op := func(path, id, summary string) httpapi.Op {
		return httpapi.Op{Method: "POST", Path: "/api/v1/books/{id}/metadata" + path, ID: id, Summary: summary, Tag: "Plugins", Permission: auth.BooksWrite}
	}
	httpapi.Register(a, op("/preview", "previewBookMetadata", "Preview the metadata of a plugin for a book, with the effect on each field"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body PreviewBody
		}) (*Preview, error) {
			p, d, err := s.bookSubject(ctx, in.Body.PluginID, in.ID)
			if err != nil {
				return nil, err
			}
			var m bookMetadata
			asked := s.ask(ctx, p, "metadata/book/get", map[string]any{"externalId": in.Body.ExternalID}, &m)
			if err := s.errNoted(ctx, p, asked); err != nil {
				return nil, err
			}
			m.ExternalID = in.Body.ExternalID
			return preview(&p.Plugin, &m.common, m.propose(&p.Plugin, d, &bookWrites{})), nil
		})
	httpapi.Register(a, op("/apply", "applyBookMetadata", "Apply the metadata of a plugin to a book; fields that are locked or that the plugin may not write are skipped"),
		func(ctx context.Context, in *struct {
			httpapi.IDInput
			Body ApplyBody
		}) (*Applied, error) {
			p, d, err := s.bookSubject(ctx, in.Body.PluginID, in.ID)
			if err != nil {
				return nil, err
			}
			return s.applyBook(ctx, p, d, in.Body.ExternalID, in.Body.Fields, in.Body.DryRun)
		})
}

// applyBook fetches a plugin's metadata of a book and writes it.
func (r *Runner) applyBook(ctx context.Context, p *runnable, d *aBook, externalID string, only []string, dry bool, before ...*asked) (*Applied, error) {
	if err := checkFields(only, (&bookMetadata{}).propose(&p.Plugin, d, &bookWrites{})); err != nil {
		return nil, err
	}
	var m bookMetadata
	all := append(before, r.ask(ctx, p, "metadata/book/get", map[string]any{"externalId": externalID}, &m))
	if all[len(all)-1].fault != nil {
		return nil, r.errNoted(ctx, p, all...)
	}
	m.ExternalID = externalID
	var w bookWrites
	out := choose(m.propose(&p.Plugin, d, &w), only)
	if dry {
		out.said("would be written")
		return out, r.note(ctx, p, all...)
	}
	out.DryRunReport = nil
	picture := r.picture(ctx, w.cover, out)
	w.given.IDs = append(w.given.IDs, m.own(p.Name)...)
	locks := []string{}
	if d.Metadata != nil {
		locks = lockedOf(d.Metadata.Locks)
	}
	var b pgx.Batch
	renaming, err := book.QueueFill(&b, d.ID, locks, &w.body)
	if err != nil {
		return nil, errors.Join(err, r.note(ctx, p, all...))
	}
	if w.genres != nil {
		taxonomy.QueueReplaceOfBook(&b, "genre", d.ID, w.genres)
	}
	if w.tags != nil {
		taxonomy.QueueReplaceOfBook(&b, "tag", d.ID, w.tags)
	}
	reference.QueueGivenBook(&b, d.ID, &w.given)
	var given cover.Given
	show := !slices.Contains(locks, "coverLock")
	var showing []events.Series
	if picture != nil {
		cover.QueueGivenBook(&b, &given, d.ID, picture, sourcePrefix+p.Name, show)
		cover.QueueShowing(&b, []uuid.UUID{d.ID}, &showing)
	}
	if err := r.write(ctx, p, &b, all...); err != nil {
		return nil, err
	}
	out.pictured(picture, given)
	if *renaming > 0 {
		r.Added.Tell(ctx, p.Tenant)
	}
	out.said("written")
	if len(out.AppliedFields) > 0 {
		told := []events.Event{events.BookUpdated(events.Book{ID: d.ID, SeriesID: d.SeriesID, LibraryID: d.LibraryID}, out.AppliedFields...)}
		if show && slices.Contains(out.AppliedFields, "cover") {
			told = append(told, cover.Told(events.BookEntity, d.ID, d.LibraryID, showing)...)
		}
		r.Publish(ctx, p.Tenant, told...)
	}
	return out, nil
}
