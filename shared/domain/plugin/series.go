package plugin

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/platform/events"
)

// seriesMetadata is a plugin's metadata of a series.
type seriesMetadata struct {
	common
	AlternateTitles []struct {
		Title     string `json:"title"`
		Language  string `json:"language"`
		TitleType string `json:"titleType"`
	} `json:"alternateTitles"`
	Status            *string  `json:"status"`
	TotalVolumeCount  *float64 `json:"totalVolumeCount"`
	TotalChapterCount *float64 `json:"totalChapterCount"`
	AgeRating         *float64 `json:"ageRating"`
	ReadingDirection  *string  `json:"readingDirection"`
}

// seriesEdit is an edit of a series.
type seriesEdit struct {
	*series.Details
	shared
	said seriesMetadata
	body series.MetadataBody
}

// titles returns the usable alternate titles.
func (m *seriesMetadata) titles() []reference.TitleBody {
	var g reference.Given
	for _, t := range m.AlternateTitles {
		g.Titles = append(g.Titles, reference.TitleBody{Label: cmp.Or(t.Language, t.TitleType, "alternate"), Title: t.Title})
	}
	g.Check()
	return g.Titles
}

func (e *seriesEdit) propose(p *Plugin) []FieldPreview {
	all := &proposals{plugin: p, locks: e.Metadata.Locks}
	now, m, body := &e.Metadata, &e.said, &e.body
	all.text(fieldNamed("title"), &now.Title, m.Title, 500, &body.Title)
	e.proposeTitles(all)
	addTo(all, fieldNamed("summary"), now.Summary, prose(m.Summary), "", &body.Summary)
	all.whole(fieldNamed("year"), now.Year, m.Year, 1, 9999, &body.Year)
	all.among(fieldNamed("status"), now.Status, m.Status, []string{"ongoing", "ended", "hiatus", "abandoned", "unknown"}, &body.Status)
	all.text(fieldNamed("publisher"), now.Publisher, m.Publisher, 500, &body.Publisher)
	all.terms("genres", e.Genres, m.Genres, 200, &e.genres)
	all.terms("tags", e.Tags, m.Tags, 500, &e.tags)
	all.language(fieldNamed("language"), now.Language, m.Language, &body.Language)
	all.whole(field{"ageRating", "age_rating", "ageRating"}, now.AgeRating, m.AgeRating, 0, 99, &body.AgeRating)
	all.among(field{"readingDirection", "reading_direction", "readingDirection"}, now.ReadingDirection, m.ReadingDirection,
		[]string{"ltr", "rtl", "ttb", "webtoon"}, &body.ReadingDirection)
	all.whole(field{"totalVolumeCount", "total_volume_count", "totalVolumeCount"}, now.TotalVolumeCount, m.TotalVolumeCount, 0, 9_999_999, &body.TotalVolumeCount)
	all.fraction(field{"totalChapterCount", "total_chapter_count", "totalChapterCount"}, now.TotalChapterCount, m.TotalChapterCount, &body.TotalChapterCount)
	people := m.people()
	why := lost(len(m.Authors)+len(m.Artists), len(people))
	all.add(field{"authors", "authors", "authorsJsonLock"}, authorsOf(now.Authors), people, why, func() { body.Authors = set(&people) })
	all.services(&m.common, e.ExternalLinks, e.ExternalIDs, &e.given)
	e.proposeRatings(all)
	all.cover(m.CoverURL, &e.cover)
	return all.fields
}

func (e *seriesEdit) proposeTitles(all *proposals) {
	known := map[string]bool{e.Metadata.Title: true}
	current := []string{}
	for _, t := range e.AlternateTitles {
		known[t.Title], current = true, append(current, t.Title)
	}
	var fresh []reference.TitleBody
	proposed := []string{}
	for _, t := range e.said.titles() {
		proposed = append(proposed, t.Title)
		if !known[t.Title] {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) == 0 {
		proposed = current // titles are added, never removed
	}
	all.add(field{"alternateTitles", "title", "alternateTitles"}, current, proposed, "", func() { e.given.Titles = fresh })
}

func (e *seriesEdit) proposeRatings(all *proposals) {
	ratings, current := e.said.ratings(all.plugin.Name), []reference.RatingBody{}
	for _, r := range e.ExternalRatings {
		current = append(current, reference.RatingBody{SourceName: r.SourceName, Rating: r.Rating, VoteCount: r.VoteCount})
	}
	why := lost(len(e.said.ExternalRate), len(ratings))
	all.add(field{"externalRatings", "ratings", ""}, current, within(ratings, current), why, func() { e.given.Ratings = ratings })
}

func authorsOf(list []book.Author) []book.AuthorBody {
	out := make([]book.AuthorBody, len(list))
	for i, a := range list {
		out[i] = book.AuthorBody(a)
	}
	return out
}

func (e *seriesEdit) kind() string { return "series" }

func (e *seriesEdit) metadata() (any, *common) { return &e.said, &e.said.common }

func (e *seriesEdit) queue(b *pgx.Batch, source string, fields []string) error {
	e.renaming = new(int64)
	if err := series.QueueFill(b, e.renaming, e.ID, lockedOf(e.Metadata.Locks), &e.body); err != nil {
		return err
	}
	if e.genres != nil {
		taxonomy.QueueReplaceOfSeries(b, "genre", e.ID, e.genres)
	}
	if e.tags != nil {
		taxonomy.QueueReplaceOfSeries(b, "tag", e.ID, e.tags)
	}
	reference.QueueGivenSeries(b, e.ID, &e.given)
	if e.picture != nil {
		cover.QueueGivenSeries(b, &e.kept, e.ID, e.picture, source, !e.Metadata.Locks["cover"])
	}
	if slices.ContainsFunc(fields, func(f string) bool { return f != "cover" }) { // a new cover sets the time itself
		b.Queue("update series set updated_at = now() where tenant_id = app.tenant() and id = $1", e.ID)
	}
	return nil
}

func (e *seriesEdit) events(plugin uuid.UUID, fields []string) []events.Event {
	at := events.Series{ID: e.ID, LibraryID: e.LibraryID}
	out := []events.Event{events.SeriesMetadataUpdated(at, plugin, fields...), events.SeriesUpdated(at, fields...)}
	if slices.Contains(fields, "cover") && !e.Metadata.Locks["cover"] {
		out = append(out, events.CoverUpdated(events.SeriesEntity, e.ID, &e.LibraryID))
	}
	return out
}

// lockedOf returns the names of the locks that are set.
func lockedOf(locks map[string]bool) []string {
	out := []string{}
	for name, on := range locks {
		if on {
			out = append(out, name)
		}
	}
	return out
}
