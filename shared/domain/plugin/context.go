package plugin

import (
	"encoding/json"
	"strings"

	"github.com/longbox/longbox/shared/domain/series"
)

// contextOf returns the variables of templates and conditions: the record of a series, with plain lists of names, and
// whether each field is locked.
func contextOf(d *series.Details) (map[string]any, error) {
	data, err := json.Marshal(d.Metadata)
	if err != nil {
		return nil, err
	}
	var metadata map[string]any
	if err := json.Unmarshal(data, &metadata); err != nil {
		return nil, err
	}
	for name, on := range d.Metadata.Locks {
		metadata[strings.TrimSuffix(name, "Lock")+"Lock"] = on
	}
	delete(metadata, "locks")
	genres, tags, titles, links, ratings, ids := []any{}, []any{}, []any{}, []any{}, []any{}, map[string]any{}
	for _, g := range d.Genres {
		genres = append(genres, g.Name)
	}
	for _, t := range d.Tags {
		tags = append(tags, t.Name)
	}
	for _, t := range d.AlternateTitles {
		titles = append(titles, map[string]any{"label": t.Label, "title": t.Title})
	}
	for _, l := range d.ExternalLinks {
		links = append(links, map[string]any{"source": l.SourceName, "url": l.URL, "externalId": deref(l.ExternalID)})
	}
	for _, r := range d.ExternalRatings {
		votes := any(nil)
		if r.VoteCount != nil {
			votes = float64(*r.VoteCount)
		}
		ratings = append(ratings, map[string]any{"source": r.SourceName, "rating": r.Rating, "votes": votes})
	}
	for _, i := range d.ExternalIDs {
		ids[i.Source] = map[string]any{"id": i.ExternalID, "url": deref(i.ExternalURL), "hash": deref(i.MetadataHash)}
	}
	metadata["genres"], metadata["tags"], metadata["alternateTitles"], metadata["externalLinks"], metadata["externalRatings"] = genres, tags, titles, links, ratings
	custom := metadata["customMetadata"]
	delete(metadata, "customMetadata")
	return map[string]any{"type": "series", "seriesId": d.ID.String(), "bookCount": float64(d.BookCount), "metadata": metadata, "externalIds": ids, "customMetadata": custom}, nil
}

// deref returns the text, or nil.
func deref(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}
