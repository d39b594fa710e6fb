package plugin

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/taxonomy"
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

// writes collects what to write to a series.
type writes struct {
	body         series.MetadataBody
	genres, tags []string // nil: unchanged
	given        reference.Given
	cover        string // URL
}

// titles returns the usable alternate titles.
func (m *seriesMetadata) titles() []reference.TitleBody {
	var g reference.Given
	for _, t := range m.AlternateTitles {
		label := t.Language
		if label == "" {
			label = t.TitleType
		}
		if label == "" {
			label = "alternate"
		}
		g.Titles = append(g.Titles, reference.TitleBody{Label: label, Title: t.Title})
	}
	g.Check()
	return g.Titles
}

// propose compares a series with a plugin's metadata. The write functions of the returned fields fill w.
func (m *seriesMetadata) propose(p *Plugin, d *series.Details, w *writes) []FieldPreview {
	all := &proposals{plugin: p, locks: d.Metadata.Locks}
	now, body := &d.Metadata, &w.body
	all.text(field{"title", "title", "title"}, &now.Title, m.Title, 500, &body.Title)
	m.proposeTitles(all, d, w)
	addTo(all, field{"summary", "summary", "summary"}, now.Summary, prose(m.Summary), "", &body.Summary)
	all.whole(field{"year", "year", "year"}, now.Year, m.Year, 1, 9999, &body.Year)
	all.among(field{"status", "status", "status"}, now.Status, m.Status, []string{"ongoing", "ended", "hiatus", "abandoned", "unknown"}, &body.Status)
	all.text(field{"publisher", "publisher", "publisher"}, now.Publisher, m.Publisher, 500, &body.Publisher)
	all.terms("genres", d.Genres, m.Genres, 200, &w.genres)
	all.terms("tags", d.Tags, m.Tags, 500, &w.tags)
	all.language(field{"language", "language", "language"}, now.Language, m.Language, &body.Language)
	all.whole(field{"ageRating", "age_rating", "ageRating"}, now.AgeRating, m.AgeRating, 0, 99, &body.AgeRating)
	all.among(field{"readingDirection", "reading_direction", "readingDirection"}, now.ReadingDirection, m.ReadingDirection,
		[]string{"ltr", "rtl", "ttb", "webtoon"}, &body.ReadingDirection)
	all.whole(field{"totalVolumeCount", "total_volume_count", "totalVolumeCount"}, now.TotalVolumeCount, m.TotalVolumeCount, 0, 9_999_999, &body.TotalVolumeCount)
	all.fraction(field{"totalChapterCount", "total_chapter_count", "totalChapterCount"}, now.TotalChapterCount, m.TotalChapterCount, &body.TotalChapterCount)
	people := m.people()
	why := lost(len(m.Authors)+len(m.Artists), len(people))
	all.add(field{"authors", "authors", "authorsJsonLock"}, authorsOf(now.Authors), people, why, func() { body.Authors = set(&people) })
	all.services(&m.common, d.ExternalLinks, d.ExternalIDs, &w.given)
	m.proposeRatings(all, d, w)
	all.cover(m.CoverURL, &w.cover)
	return all.fields
}

func (m *seriesMetadata) proposeTitles(all *proposals, d *series.Details, w *writes) {
	known := map[string]bool{d.Metadata.Title: true}
	current := []string{}
	for _, t := range d.AlternateTitles {
		known[t.Title], current = true, append(current, t.Title)
	}
	var fresh []reference.TitleBody
	proposed := []string{}
	for _, t := range m.titles() {
		proposed = append(proposed, t.Title)
		if !known[t.Title] {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) == 0 {
		proposed = current // titles are added, never removed
	}
	all.add(field{"alternateTitles", "title", "alternateTitles"}, current, proposed, "", func() { w.given.Titles = fresh })
}

func (m *seriesMetadata) proposeRatings(all *proposals, d *series.Details, w *writes) {
	ratings, current := m.ratings(all.plugin.Name), []reference.RatingBody{}
	for _, r := range d.ExternalRatings {
		current = append(current, reference.RatingBody{SourceName: r.SourceName, Rating: r.Rating, VoteCount: r.VoteCount})
	}
	why := lost(len(m.ExternalRate), len(ratings))
	all.add(field{"externalRatings", "ratings", ""}, current, within(ratings, current), why, func() { w.given.Ratings = ratings })
}

func authorsOf(list []book.Author) []book.AuthorBody {
	out := make([]book.AuthorBody, len(list))
	for i, a := range list {
		out[i] = book.AuthorBody(a)
	}
	return out
}

// queue adds the writes of the fields to the batch, on condition that the series still has the same locks. picture is
// its cover or nil.
func (w *writes) queue(b *pgx.Batch, d *series.Details, plugin string, fields []string, picture []byte, renaming *int64, given *cover.Given) error {
	if err := series.QueueFill(b, renaming, d.ID, lockedOf(d.Metadata.Locks), &w.body); err != nil {
		return err
	}
	if w.genres != nil {
		taxonomy.QueueReplaceOfSeries(b, "genre", d.ID, w.genres)
	}
	if w.tags != nil {
		taxonomy.QueueReplaceOfSeries(b, "tag", d.ID, w.tags)
	}
	reference.QueueGivenSeries(b, d.ID, &w.given)
	if picture != nil {
		cover.QueueGivenSeries(b, given, d.ID, picture, sourcePrefix+plugin, !d.Metadata.Locks["cover"])
	}
	if slices.ContainsFunc(fields, func(f string) bool { return f != "cover" }) { // a new cover sets the time itself
		b.Queue("update series set updated_at = now() where tenant_id = app.tenant() and id = $1", d.ID)
	}
	return nil
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
