package plugin

import (
	"encoding/json"
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
	title, why := line(m.Title, 500)
	all.add("title", "title", "title", now.Title, title, why, func() { body.Title = set(title) })
	m.proposeTitles(all, d, w)
	summary := prose(m.Summary)
	all.add("summary", "summary", "summary", now.Summary, summary, "", func() { body.Summary = set(summary) })
	year, why := whole(m.Year, 1, 9999)
	all.add("year", "year", "year", now.Year, year, why, func() { body.Year = set(year) })
	status, why := among(m.Status, "ongoing", "ended", "hiatus", "abandoned", "unknown")
	all.add("status", "status", "status", now.Status, status, why, func() { body.Status = set(status) })
	publisher, why := line(m.Publisher, 500)
	all.add("publisher", "publisher", "publisher", now.Publisher, publisher, why, func() { body.Publisher = set(publisher) })
	genres, tags := names(m.Genres, 200, 100), names(m.Tags, 500, 100)
	currentGenres, currentTags := termNames(d.Genres), termNames(d.Tags)
	all.add("genres", "genres", "genres", currentGenres, spelled(genres, currentGenres), lost(len(m.Genres), len(genres)), func() { w.genres = genres })
	all.add("tags", "tags", "tags", currentTags, spelled(tags, currentTags), lost(len(m.Tags), len(tags)), func() { w.tags = tags })
	spoken, why := tongue(m.Language)
	all.add("language", "language", "language", now.Language, spoken, why, func() { body.Language = set(spoken) })
	age, why := whole(m.AgeRating, 0, 99)
	all.add("ageRating", "age_rating", "ageRating", now.AgeRating, age, why, func() { body.AgeRating = set(age) })
	direction, why := among(m.ReadingDirection, "ltr", "rtl", "ttb", "webtoon")
	all.add("readingDirection", "reading_direction", "readingDirection", now.ReadingDirection, direction, why, func() { body.ReadingDirection = set(direction) })
	volumes, why := whole(m.TotalVolumeCount, 0, 9_999_999)
	all.add("totalVolumeCount", "total_volume_count", "totalVolumeCount", now.TotalVolumeCount, volumes, why, func() { body.TotalVolumeCount = set(volumes) })
	chapters, why := fraction(m.TotalChapterCount)
	all.add("totalChapterCount", "total_chapter_count", "totalChapterCount", now.TotalChapterCount, chapters, why, func() { body.TotalChapterCount = set(chapters) })
	people := m.people()
	all.add("authors", "authors", "authorsJsonLock", authorsOf(now.Authors), people, lost(len(m.Authors)+len(m.Artists), len(people)), func() { body.Authors = set(&people) })
	m.proposeReferences(all, d, w)
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
	all.add("alternateTitles", "title", "alternateTitles", current, proposed, "", func() { w.given.Titles = fresh })
}

// proposeReferences adds references and the cover.
func (m *seriesMetadata) proposeReferences(all *proposals, d *series.Details, w *writes) {
	links, current := m.links(), linksOf(d.ExternalLinks)
	all.add("externalLinks", "links", "", current, within(links, current), lost(len(m.Links), len(links)), func() { w.given.Links = links })
	ids, currentIDs := m.ids(), idsOf(d.ExternalIDs)
	all.add("externalIds", "external_ids", "", currentIDs, within(ids, currentIDs), "", func() { w.given.IDs = ids })
	ratings, currentRatings := m.ratings(all.plugin.Name), []reference.RatingBody{}
	for _, r := range d.ExternalRatings {
		currentRatings = append(currentRatings, reference.RatingBody{SourceName: r.SourceName, Rating: r.Rating, VoteCount: r.VoteCount})
	}
	all.add("externalRatings", "ratings", "", currentRatings, within(ratings, currentRatings), lost(len(m.ExternalRate), len(ratings)), func() { w.given.Ratings = ratings })
	m.proposeCover(all, m.CoverURL, &w.cover)
}

// proposeCover adds the cover; w receives its URL. A locked cover still stores the picture, but keeps showing the old
// one.
func (m *common) proposeCover(all *proposals, said *string, w *string) {
	address, why := outward(said), ""
	if said != nil && *said != "" && address == nil {
		why = unusable
	}
	all.add("cover", "covers", "", nil, address, why, func() { *w = *address })
}

// linksOf returns links in the form of user input.
func linksOf(all []reference.Link) []reference.LinkBody {
	out := []reference.LinkBody{}
	for _, l := range all {
		out = append(out, reference.LinkBody{SourceName: l.SourceName, URL: l.URL})
	}
	return out
}

// idsOf returns ids in the form of user input, without their links.
func idsOf(all []reference.ExternalID) []reference.IDBody {
	out := []reference.IDBody{}
	for _, i := range all {
		out = append(out, reference.IDBody{Source: i.Source, ExternalID: i.ExternalID})
	}
	return out
}

// within returns current if it contains the whole list, else the list.
func within[T any](list, current []T) []T {
	known := map[string]bool{}
	for _, v := range current {
		known[written(v)] = true
	}
	for _, v := range list {
		if !known[written(v)] {
			return list
		}
	}
	if len(list) == 0 {
		return nil
	}
	return current
}

// written returns a value as JSON.
func written(v any) string {
	data, _ := json.Marshal(v) // cannot fail for texts and numbers
	return string(data)
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
