package series

import (
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/reference"
)

// Series is a series in a list.
type Series struct {
	ID                  uuid.UUID `json:"id" db:"id"`
	LibraryID           uuid.UUID `json:"libraryId" db:"library_id"`
	LibraryName         string    `json:"libraryName" db:"library_name"`
	Title               string    `json:"title" db:"title"`
	TitleSort           string    `json:"titleSort" db:"title_sort"`
	Path                string    `json:"path" db:"-"`
	Summary             *string   `json:"summary" db:"summary"`
	Publisher           *string   `json:"publisher" db:"publisher"`
	Year                *int32    `json:"year" db:"year"`
	BookCount           int64     `json:"bookCount" db:"book_count"`
	UnreadCount         int64     `json:"unreadCount" db:"unread_count" doc:"Number of books that the caller has not read"`
	LocalMaxVolume      *int32    `json:"localMaxVolume" db:"max_volume"`
	LocalMaxChapter     *float64  `json:"localMaxChapter" db:"max_chapter"`
	VolumesOwned        int64     `json:"volumesOwned" db:"volumes_owned" doc:"Number of books that are a whole volume"`
	HasCustomCover      bool      `json:"hasCustomCover" db:"custom" doc:"Whether a user uploaded a cover"`
	SelectedCoverSource string    `json:"selectedCoverSource" db:"-" example:"first_book" doc:"first_book, file (a picture beside the books), custom (an uploaded picture), plugin: followed by the name of a plugin that gave a picture, or book: followed by the id of a book"`
	WantToRead          bool      `json:"wantToRead" db:"wanted" doc:"Whether the caller wants to read the series"`
	Tracked             bool      `json:"tracked" db:"tracked" doc:"Whether releases of the series are tracked"`
	UpstreamChapterGap  *float64  `json:"upstreamChapterGap" db:"chapter_gap" doc:"Number of missing chapters of a tracked series; null if none are missing or the number is not known"`
	UpstreamVolumeGap   *int32    `json:"upstreamVolumeGap" db:"volume_gap" doc:"Number of missing volumes of a tracked series; null if none are missing or the number is not known"`
	UpstreamGapProvider *string   `json:"upstreamGapProvider" db:"gap_provider" doc:"Display name of the plugin that matched the series last; null if there is no gap"`
	CreatedAt           time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt           time.Time `json:"updatedAt" db:"updated_at"`
}

// Details is the full record of a series.
type Details struct {
	Series
	progress.Readings
	Metadata Metadata `json:"metadata"`
	reference.OfSeries
	Genres []book.Term `json:"genres" nullable:"false"`
	Tags   []book.Term `json:"tags" nullable:"false"`
}

// Metadata is the metadata record of a series; unknown fields are null.
type Metadata struct {
	Title             string          `json:"title" db:"title"`
	TitleSort         string          `json:"titleSort" db:"title_sort"`
	Summary           *string         `json:"summary" db:"summary"`
	Publisher         *string         `json:"publisher" db:"publisher"`
	Imprint           *string         `json:"imprint" db:"imprint"`
	Status            *string         `json:"status" db:"status" enum:"ongoing,ended,hiatus,abandoned,unknown"`
	ReadingDirection  *string         `json:"readingDirection" db:"reading_direction" enum:"ltr,rtl,ttb,webtoon"`
	Language          *string         `json:"language" db:"language" doc:"BCP 47 language tag"`
	AgeRating         *int32          `json:"ageRating" db:"age_rating"`
	Year              *int32          `json:"year" db:"year"`
	TotalChapterCount *float64        `json:"totalChapterCount" db:"total_chapter_count"`
	TotalVolumeCount  *int32          `json:"totalVolumeCount" db:"total_volume_count"`
	Authors           []book.Author   `json:"authors" db:"authors" nullable:"true"`
	CustomMetadata    json.RawMessage `json:"customMetadata" db:"custom_metadata"`
	CreatedAt         time.Time       `json:"createdAt" db:"created_at"`
	UpdatedAt         time.Time       `json:"updatedAt" db:"updated_at"`
	Warnings          []string        `json:"warnings" db:"-" nullable:"false" doc:"Values of files beside the books that could not be used, and why"`
	Locks             Locks           `json:"locks" db:"-"`
}

// Locks maps each field to whether only people may change it.
type Locks map[string]bool

var lockNames = []string{"ageRating", "alternateTitles", "authorsJsonLock", "cover", "customMetadata", "genres", "imprint", "language",
	"publisher", "readingDirection", "status", "summary", "tags", "title", "titleSort", "totalChapterCount", "totalVolumeCount", "year"}

// Schema lists every lock.
func (Locks) Schema(huma.Registry) *huma.Schema { return book.LockSchema(lockNames) }
