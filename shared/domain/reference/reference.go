package reference

import (
	"time"

	"github.com/google/uuid"
)

// Title is an alternate title of a series: another language or another kind.
type Title struct {
	ID        uuid.UUID `json:"id" db:"id"`
	SeriesID  uuid.UUID `json:"seriesId" db:"series_id"`
	Label     string    `json:"label" db:"label" example:"Japanese"`
	Title     string    `json:"title" db:"title"`
	CreatedAt time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt time.Time `json:"updatedAt" db:"updated_at"`
}

// ExternalID is the id of a series or book at another service.
type ExternalID struct {
	ID           uuid.UUID  `json:"id" db:"id"`
	SeriesID     *uuid.UUID `json:"seriesId,omitempty" db:"series_id" doc:"Id of the series; absent for a book"`
	BookID       *uuid.UUID `json:"bookId,omitempty" db:"book_id" doc:"Id of the book; absent for a series"`
	Source       string     `json:"source" db:"source" doc:"Name of the service, for example comicinfo"`
	ExternalID   string     `json:"externalId" db:"external_id"`
	ExternalURL  *string    `json:"externalUrl" db:"external_url"`
	MetadataHash *string    `json:"metadataHash" db:"metadata_hash"`
	LastSyncedAt *time.Time `json:"lastSyncedAt" db:"last_synced_at"`
	CreatedAt    time.Time  `json:"createdAt" db:"created_at"`
	UpdatedAt    time.Time  `json:"updatedAt" db:"updated_at"`
}

// Link is a page about a series or a book.
type Link struct {
	ID         uuid.UUID  `json:"id" db:"id"`
	SeriesID   *uuid.UUID `json:"seriesId,omitempty" db:"series_id" doc:"Id of the series; absent for a book"`
	BookID     *uuid.UUID `json:"bookId,omitempty" db:"book_id" doc:"Id of the book; absent for a series"`
	SourceName string     `json:"sourceName" db:"source_name"`
	URL        string     `json:"url" db:"url"`
	ExternalID *string    `json:"externalId" db:"external_id"`
	CreatedAt  time.Time  `json:"createdAt" db:"created_at"`
	UpdatedAt  time.Time  `json:"updatedAt" db:"updated_at"`
}

// Rating is the rating of a series by another service's users.
type Rating struct {
	ID         uuid.UUID `json:"id" db:"id"`
	SeriesID   uuid.UUID `json:"seriesId" db:"series_id"`
	SourceName string    `json:"sourceName" db:"source_name"`
	Rating     float64   `json:"rating" db:"rating" minimum:"0" maximum:"100"`
	VoteCount  *int32    `json:"voteCount" db:"vote_count"`
	FetchedAt  time.Time `json:"fetchedAt" db:"fetched_at"`
	CreatedAt  time.Time `json:"createdAt" db:"created_at"`
	UpdatedAt  time.Time `json:"updatedAt" db:"updated_at"`
}
