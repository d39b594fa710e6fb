package plugin

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/series"
)

// contextOf returns the variables of templates and conditions: the record of a series, with plain lists of names, and
// whether each field is locked.
func contextOf(d *series.Details) (map[string]any, error) {
	metadata, custom, err := fieldsIn(d.Metadata, d.Metadata.Locks, d.Genres, d.Tags, d.ExternalLinks)
	if err != nil {
		return nil, err
	}
	titles, ratings := []any{}, []any{}
	for _, t := range d.AlternateTitles {
		titles = append(titles, map[string]any{"label": t.Label, "title": t.Title})
	}
	for _, r := range d.ExternalRatings {
		votes := any(nil)
		if r.VoteCount != nil {
			votes = float64(*r.VoteCount)
		}
		ratings = append(ratings, map[string]any{"source": r.SourceName, "rating": r.Rating, "votes": votes})
	}
	metadata["alternateTitles"], metadata["externalRatings"] = titles, ratings
	return map[string]any{"type": "series", "seriesId": d.ID.String(), "bookCount": float64(d.BookCount), "metadata": metadata,
		"externalIds": idsIn(d.ExternalIDs), "customMetadata": custom}, nil
}

// contextOfBook is contextOf for a book: its own record, and that of its series as series. Fields that only a series
// has, for example bookCount and metadata.status, are those of its series.
func contextOfBook(d *aBook, s *series.Details) (map[string]any, error) {
	about, err := contextOf(s)
	if err != nil {
		return nil, err
	}
	record := d.Metadata
	if record == nil {
		record = &book.Metadata{Locks: book.Unlocked()}
	}
	own, custom, err := fieldsIn(struct {
		*book.Metadata
		Title     string   `json:"title"`
		TitleSort string   `json:"titleSort"`
		Number    *float64 `json:"number"`
		Volume    *int32   `json:"volume"`
		Chapter   *float64 `json:"chapter"`
	}{record, d.Title, d.TitleSort, d.Number, d.Volume, d.Chapter}, record.Locks, d.Genres, d.Tags, d.elsewhere.ExternalLinks)
	if err != nil {
		return nil, err
	}
	metadata := maps.Clone(about["metadata"].(map[string]any))
	maps.Copy(metadata, own)
	out := maps.Clone(about)
	maps.Copy(out, map[string]any{"type": "book", "bookId": d.ID.String(), "libraryId": d.LibraryID.String(), "fileFormat": d.FileFormat,
		"fileSize": float64(d.FileSize), "pageCount": float64(d.PageCount), "metadata": metadata, "externalIds": idsIn(d.elsewhere.ExternalIDs),
		"customMetadata": custom, "series": about})
	return out, nil
}

// fieldsIn returns the fields of a metadata record with their locks, and its custom metadata.
func fieldsIn(record any, locks map[string]bool, genres, tags []book.Term, links []reference.Link) (out map[string]any, custom any, err error) {
	data, err := json.Marshal(record)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, nil, err
	}
	for name, on := range locks {
		out[strings.TrimSuffix(name, "Lock")+"Lock"] = on
	}
	delete(out, "locks")
	pages := []any{}
	for _, l := range links {
		pages = append(pages, map[string]any{"source": l.SourceName, "url": l.URL, "externalId": deref(l.ExternalID)})
	}
	out["genres"], out["tags"], out["externalLinks"] = namesIn(genres), namesIn(tags), pages
	custom = out["customMetadata"]
	delete(out, "customMetadata")
	return out, custom, nil
}

func namesIn(terms []book.Term) []any {
	out := []any{}
	for _, t := range terms {
		out = append(out, t.Name)
	}
	return out
}

func idsIn(all []reference.ExternalID) map[string]any {
	out := map[string]any{}
	for _, i := range all {
		out[i.Source] = map[string]any{"id": i.ExternalID, "url": deref(i.ExternalURL), "hash": deref(i.MetadataHash)}
	}
	return out
}

// deref returns the text, or nil.
func deref(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}
