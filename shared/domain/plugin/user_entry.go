package plugin

import (
	"math"
	"time"

	"github.com/google/uuid"
)

// syncEntry is what a user has read of a series, as plugins say it (docs/plugins.md).
type syncEntry struct {
	ExternalID string        `json:"externalId"`
	Title      string        `json:"title,omitempty"`
	Status     string        `json:"status"`
	Progress   *syncProgress `json:"progress,omitempty"`
	Score      *float64      `json:"score,omitempty"` // 1 to 100
	Notes      *string       `json:"notes,omitempty"`
	StartedAt  *time.Time    `json:"startedAt,omitempty"`
	Completed  *time.Time    `json:"completedAt,omitempty"`
	Updated    *time.Time    `json:"latestUpdatedAt,omitempty"`
}

// The states of an entry that Longbox tells or heeds; there are others.
const (
	reading   = "reading"
	completed = "completed"
)

// syncProgress counts what was read.
type syncProgress struct {
	Chapters      *float64   `json:"chapters,omitempty"`
	Volumes       *float64   `json:"volumes,omitempty"`
	TotalChapters *float64   `json:"totalChapters,omitempty"`
	TotalVolumes  *float64   `json:"totalVolumes,omitempty"`
	MaxChapter    *float64   `json:"maxChapter,omitempty"` // the highest that was read
	MaxVolume     *float64   `json:"maxVolume,omitempty"`
	Books         []syncBook `json:"readBooks,omitempty"`
}

// syncBook is one book of it.
type syncBook struct {
	Volume      *float64 `json:"volume,omitempty"`
	Chapter     *float64 `json:"chapter,omitempty"`
	Completed   bool     `json:"completed"`
	CurrentPage *int32   `json:"currentPage,omitempty"`
	Percentage  *float64 `json:"progressPercentage,omitempty"`
}

// readBook is a book of a series, and what the user has read of it.
type readBook struct {
	Series     uuid.UUID  `db:"series_id"`
	ID         uuid.UUID  `db:"id"`
	Volume     *float64   `db:"volume"`
	Chapter    *float64   `db:"chapter"`
	Completed  *bool      `db:"completed"` // nil: not begun
	Page       *int32     `db:"current_page"`
	Percentage *float64   `db:"percentage"`
	Started    *time.Time `db:"started_at"`
	Ended      *time.Time `db:"completed_at"`
	Updated    *time.Time `db:"updated_at"`
}

func (b *readBook) read() bool  { return b.Completed != nil && *b.Completed }
func (b *readBook) begun() bool { return b.Completed != nil }

// readSeries is a series that the user has read in, as the service calls it.
type readSeries struct {
	ID            uuid.UUID `db:"series_id"`
	ExternalID    string    `db:"external_id"`
	Title         string    `db:"title"`
	Status        *string   `db:"status"`
	TotalVolumes  *float64  `db:"total_volume_count"`
	TotalChapters *float64  `db:"total_chapter_count"`
	Rating        *float64  `db:"rating"`
	Notes         *string   `db:"notes"`
}

// entry is what to tell the service of a series, nil where the user does not want that, or has not begun it.
func (s *readSeries) entry(books []readBook, host hostConfig, detailed bool) *syncEntry {
	out := &syncEntry{ExternalID: s.ExternalID, Title: s.Title, Status: reading, Progress: &syncProgress{TotalVolumes: s.TotalVolumes, TotalChapters: s.TotalChapters}}
	p := out.Progress
	all, any, whole, numbered := true, false, 0, false
	for _, b := range books {
		counts := b.read() || host.CountPartialProgress && b.begun()
		all, any = all && b.read(), any || b.begun()
		numbered = numbered || b.Volume != nil || b.Chapter != nil
		if counts {
			whole++
			p.MaxVolume, p.MaxChapter = higher(p.MaxVolume, b.Volume), higher(p.MaxChapter, b.Chapter)
		}
		if b.begun() {
			out.StartedAt, out.Updated = earlier(out.StartedAt, b.Started), latest(out.Updated, b.Updated)
			out.Completed = latest(out.Completed, b.Ended)
		}
		if detailed && b.begun() {
			p.Books = append(p.Books, syncBook{b.Volume, b.Chapter, b.read(), b.Page, b.Percentage})
		}
	}
	if !any {
		return nil
	}
	if p.MaxChapter != nil {
		chapters := math.Floor(*p.MaxChapter)
		p.Chapters = &chapters
	}
	if p.Volumes = p.MaxVolume; !numbered {
		n := float64(whole)
		p.Volumes = &n
	}
	if all && s.over(len(books), p) {
		out.Status = completed
	} else {
		out.Completed = nil
	}
	if out.Status == completed && !host.IncludeCompleted || out.Status == reading && !host.IncludeInProgress {
		return nil
	}
	if host.SyncRatings {
		out.Score, out.Notes = s.Rating, s.Notes
	}
	return out
}

// over tells whether nothing of the series is to come, as far as is known: what has all of its volumes or chapters, or
// has ended; of what nothing is known, what there is.
func (s *readSeries) over(books int, p *syncProgress) bool {
	switch {
	case s.TotalVolumes != nil && p.MaxVolume != nil:
		return *p.MaxVolume >= *s.TotalVolumes
	case s.TotalChapters != nil && p.MaxChapter != nil:
		return *p.MaxChapter >= *s.TotalChapters
	case s.TotalVolumes != nil:
		return float64(books) >= *s.TotalVolumes
	}
	return s.Status == nil || *s.Status != "ongoing" && *s.Status != "hiatus"
}

// unread are the books that an entry of the service says to be read and that are not so here. Nothing is unread by it.
func (e *syncEntry) unread(books []readBook) (out []uuid.UUID) {
	p := e.Progress
	if p == nil {
		p = &syncProgress{}
	}
	numbered := false
	for _, b := range books {
		numbered = numbered || b.Volume != nil || b.Chapter != nil
	}
	for i, b := range books {
		read := e.Status == completed
		switch {
		case read || b.read():
		case !numbered: // the first ones
			n := p.Volumes
			if n == nil {
				n = p.Chapters
			}
			read = n != nil && float64(i) < *n
		case b.Chapter != nil:
			read = p.Chapters != nil && *b.Chapter <= *p.Chapters
		default:
			read = b.Volume != nil && p.Volumes != nil && *b.Volume <= *p.Volumes
		}
		for _, one := range p.Books {
			read = read || one.Completed && (b.Volume != nil || b.Chapter != nil) && same(one.Volume, b.Volume) && same(one.Chapter, b.Chapter)
		}
		if read && !b.read() {
			out = append(out, b.ID)
		}
	}
	return out
}

func same(a, b *float64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func higher(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func earlier(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

func latest(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.After(*a) {
		return b
	}
	return a
}
