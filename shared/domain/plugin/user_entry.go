package plugin

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
)

// maxNotes is how much of a user's notes is sent to a service, in characters.
const maxNotes = 2000

// syncEntry is a user's progress in a series as plugins receive it (docs/plugins.md).
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

// The entry statuses that Longbox sends or evaluates; there are others.
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
	MaxChapter    *float64   `json:"maxChapter,omitempty"` // the highest one read
	MaxVolume     *float64   `json:"maxVolume,omitempty"`
	Books         []syncBook `json:"readBooks,omitempty"`
}

// syncBook is the progress in one book.
type syncBook struct {
	Volume      *float64 `json:"volume,omitempty"`
	Chapter     *float64 `json:"chapter,omitempty"`
	Completed   bool     `json:"completed"`
	CurrentPage *int32   `json:"currentPage,omitempty"`
	Percentage  *float64 `json:"progressPercentage,omitempty"`
}

// readBook is a book of a series with the user's progress.
type readBook struct {
	Series     uuid.UUID  `db:"series_id"`
	ID         uuid.UUID  `db:"id"`
	Volume     *float64   `db:"volume"`
	Chapter    *float64   `db:"chapter"`
	Completed  *bool      `db:"completed"` // nil: not started
	Page       *int32     `db:"current_page"`
	Percentage *float64   `db:"percentage"`
	Started    *time.Time `db:"started_at"`
	Ended      *time.Time `db:"completed_at"`
	Updated    *time.Time `db:"updated_at"`
	Finished   bool       `db:"finished"` // once, perhaps not now
}

func (b *readBook) read() bool  { return b.Completed != nil && *b.Completed }
func (b *readBook) begun() bool { return b.Completed != nil }

// readSeries is a series with progress, under its id at the service.
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

// entry returns what to send about a series, nil if the user's config excludes it, or nothing was started.
func (s *readSeries) entry(books []readBook, host hostConfig, detailed bool) *syncEntry {
	out := &syncEntry{ExternalID: s.ExternalID, Title: s.Title, Status: reading, Progress: &syncProgress{TotalVolumes: s.TotalVolumes, TotalChapters: s.TotalChapters}}
	p := out.Progress
	all, any := true, false
	for _, b := range books {
		all, any = all && b.read(), any || b.begun()
		if host.counts(&b) {
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
	p.Volumes, p.Chapters = host.upTo(books)
	if all && s.over(len(books), p) {
		out.Status = completed
	} else {
		out.Completed = nil
	}
	if out.Status == completed && !host.IncludeCompleted || out.Status == reading && !host.IncludeInProgress {
		return nil
	}
	if host.SyncRatings {
		out.Score = s.Rating
		if s.Notes != nil {
			out.Notes = new(clipTo(*s.Notes, maxNotes))
		}
	}
	return out
}

// with merges the entries of two series with the same id at the service: the further progress of either wins. nil means
// nothing to send.
func (e *syncEntry) with(other *syncEntry) *syncEntry {
	if e == nil || other == nil {
		return cmp.Or(e, other)
	}
	p, q := e.Progress, other.Progress
	p.Volumes, p.Chapters = higher(p.Volumes, q.Volumes), higher(p.Chapters, q.Chapters)
	p.MaxVolume, p.MaxChapter = higher(p.MaxVolume, q.MaxVolume), higher(p.MaxChapter, q.MaxChapter)
	p.TotalVolumes, p.TotalChapters = higher(p.TotalVolumes, q.TotalVolumes), higher(p.TotalChapters, q.TotalChapters)
	p.Books = append(p.Books, q.Books...)
	if other.Status == completed {
		e.Status = completed
	}
	e.StartedAt, e.Completed, e.Updated = earlier(e.StartedAt, other.StartedAt), latest(e.Completed, other.Completed), latest(e.Updated, other.Updated)
	e.Score, e.Notes = cmp.Or(e.Score, other.Score), cmp.Or(e.Notes, other.Notes)
	return e
}

// counts reports whether a book counts as read for the service.
func (h *hostConfig) counts(b *readBook) bool { return b.read() || h.CountPartialProgress && b.begun() }

// upTo returns the volume and the chapter up to which every existing book counts as read: reading only the tenth volume
// does not make ten. For books without numbers it is the number of leading read books.
func (h *hostConfig) upTo(books []readBook) (volume, chapter *float64) {
	volumes, chapters := []readBook{}, []readBook{}
	for _, b := range books {
		switch {
		case b.Chapter != nil:
			chapters = append(chapters, b)
		case b.Volume != nil:
			volumes = append(volumes, b)
		}
	}
	if len(volumes)+len(chapters) == 0 {
		return new(float64(len(h.leading(books)))), nil
	}
	slices.SortStableFunc(volumes, func(a, b readBook) int { return cmp.Compare(*a.Volume, *b.Volume) })
	slices.SortStableFunc(chapters, func(a, b readBook) int { return cmp.Compare(*a.Chapter, *b.Chapter) })
	if read := h.leading(volumes); len(read) > 0 {
		volume = read[len(read)-1].Volume
	}
	if read := h.leading(chapters); len(read) > 0 {
		chapter = new(math.Floor(*read[len(read)-1].Chapter))
	}
	return volume, chapter
}

// leading returns the books before the first one that does not count as read.
func (h *hostConfig) leading(books []readBook) []readBook {
	if n := slices.IndexFunc(books, func(b readBook) bool { return !h.counts(&b) }); n >= 0 {
		return books[:n]
	}
	return books
}

// over reports whether nothing of the series is left to come, as far as is known: its total of volumes or chapters is
// reached, or it has ended. If neither is known, the existing books count as all.
func (s *readSeries) over(books int, p *syncProgress) bool {
	switch {
	case s.TotalVolumes != nil && p.MaxVolume != nil:
		return *p.MaxVolume >= *s.TotalVolumes
	case s.TotalChapters != nil && p.MaxChapter != nil:
		return *p.MaxChapter >= *s.TotalChapters
	case s.TotalVolumes != nil && p.MaxChapter == nil:
		return float64(books) >= *s.TotalVolumes
	}
	return s.TotalVolumes == nil && (s.Status == nil || *s.Status != "ongoing" && *s.Status != "hiatus")
}

// heardEntry is a user's progress in a series as the service reports it, as far as Longbox uses it.
type heardEntry struct {
	ExternalID string         `json:"externalId"`
	Title      string         `json:"title"`
	Status     string         `json:"status"`
	Score      *float64       `json:"score"`
	Progress   *heardProgress `json:"progress"`
}

type heardProgress struct {
	Volumes  *float64 `json:"volumes"`
	Chapters *float64 `json:"chapters"`
	Books    []struct {
		Volume    *float64 `json:"volume"`
		Chapter   *float64 `json:"chapter"`
		Completed bool     `json:"completed"`
	} `json:"readBooks"`
}

// ahead reports whether the service has more progress than told, or a status that ends the series differently: then
// nothing is sent.
func (e *heardEntry) ahead(told *syncEntry) bool {
	if told == nil || e.Status != reading && e.Status != told.Status && e.Status != "" && e.Status != "plan_to_read" {
		return true
	}
	p := e.Progress
	return p != nil && (more(p.Volumes, told.Progress.Volumes) || more(p.Chapters, told.Progress.Chapters))
}

// more reports whether a count is higher than the one to send; an absent count lowers nothing.
func more(a, b *float64) bool { return a != nil && b != nil && *a > *b }

// unread returns the books that the service reports as read and that are not read here. Nothing becomes unread. Books
// that were finished here before are left to the user, who reads them again or has marked them as unread. Started books
// stay started if those count as read for the service.
func (e *heardEntry) unread(books []readBook, host hostConfig) (out []uuid.UUID) {
	p := e.Progress
	if p == nil {
		p = &heardProgress{}
	}
	numbered := slices.ContainsFunc(books, func(b readBook) bool { return b.Volume != nil || b.Chapter != nil })
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
		case b.Chapter != nil && (b.Volume == nil || p.Chapters != nil && *p.Chapters > 0):
			read = p.Chapters != nil && *b.Chapter <= *p.Chapters
		default:
			read = b.Volume != nil && p.Volumes != nil && *b.Volume <= *p.Volumes
		}
		for _, one := range p.Books {
			read = read || one.Completed && (b.Volume != nil || b.Chapter != nil) && same(one.Volume, b.Volume) && same(one.Chapter, b.Chapter)
		}
		if read && !b.read() && !b.Finished && !(host.CountPartialProgress && b.begun() && e.Status != completed) {
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
