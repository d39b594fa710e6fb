package events

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Book identifies a book with its series and library.
type Book struct {
	ID        uuid.UUID `db:"id"`
	SeriesID  uuid.UUID `db:"series_id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// Series identifies a series with its library.
type Series struct {
	ID        uuid.UUID `db:"id"`
	LibraryID uuid.UUID `db:"library_id"`
}

// EntityType is the kind of entity whose cover changed.
type EntityType string

// Entities with covers.
const (
	BookEntity   EntityType = "book"
	SeriesEntity EntityType = "series"
)

type bookData struct {
	Type      string    `json:"type"`
	BookID    uuid.UUID `json:"book_id"`
	SeriesID  uuid.UUID `json:"series_id"`
	LibraryID uuid.UUID `json:"library_id"`
	Timestamp time.Time `json:"timestamp"`
}

type bookFieldsData struct {
	bookData
	Fields []string `json:"fields"`
}

type seriesData struct {
	Type      string    `json:"type"`
	SeriesID  uuid.UUID `json:"series_id"`
	LibraryID uuid.UUID `json:"library_id"`
	Timestamp time.Time `json:"timestamp"`
}

type seriesFieldsData struct {
	seriesData
	Fields []string `json:"fields"`
}

type libraryData struct {
	Type      string    `json:"type"`
	LibraryID uuid.UUID `json:"library_id"`
	Timestamp time.Time `json:"timestamp"`
}

type coverData struct {
	Type       string     `json:"type"`
	EntityType EntityType `json:"entity_type"`
	EntityID   uuid.UUID  `json:"entity_id"`
	LibraryID  *uuid.UUID `json:"library_id"`
	Timestamp  time.Time  `json:"timestamp"`
}

// BookCreated says that a new book was added.
func BookCreated(b Book) Event { return bookEvent("book_created", b) }

// BookDeleted says that a book was removed permanently. For a missing file the event is [BookUpdated] with the field
// "deleted".
func BookDeleted(b Book) Event { return bookEvent("book_deleted", b) }

// BookUpdated says that a book changed. fields names what changed; none means anything (null).
func BookUpdated(b Book, fields ...string) Event {
	e := bookEvent("book_updated", b)
	e.Data = bookFieldsData{e.Data.(bookData), fields}
	e.Elsewhere = slices.Contains(fields, "path") || slices.Contains(fields, "deleted")
	return e
}

// SeriesCreated says that a new series was discovered.
func SeriesCreated(s Series) Event { return seriesEvent("series_created", s) }

// SeriesDeleted says that a series was removed.
func SeriesDeleted(s Series) Event { return seriesEvent("series_deleted", s) }

// SeriesUpdated says that a series changed. fields names what changed; none means anything (null).
func SeriesUpdated(s Series, fields ...string) Event {
	e := seriesEvent("series_updated", s)
	e.Data = seriesFieldsData{e.Data.(seriesData), fields}
	return e
}

// LibraryCreated says that a library was added.
func LibraryCreated(id uuid.UUID) Event { return libraryEvent("library_created", id) }

// LibraryUpdated says that a library's settings changed.
func LibraryUpdated(id uuid.UUID) Event { return libraryEvent("library_updated", id) }

// LibraryDeleted says that a library was removed.
func LibraryDeleted(id uuid.UUID) Event { return libraryEvent("library_deleted", id) }

// Resync tells listeners to reload their state: events were lost ("not_sent"), or what they may see has changed
// ("access_changed").
func Resync(reason string) Event {
	return Event{Topic: Entities, Kind: "resync", Data: map[string]string{"reason": reason}}
}

// CoverUpdated says that a cover was rendered again or replaced. library may be nil.
func CoverUpdated(entity EntityType, id uuid.UUID, library *uuid.UUID) Event {
	permission := "BooksRead"
	if entity == SeriesEntity {
		permission = "SeriesRead"
	}
	return Event{Topic: Entities, Kind: "cover_updated", Permission: permission,
		Data: coverData{"cover_updated", entity, id, library, now()}}
}

type pluginData struct {
	Type      string    `json:"type"`
	PluginID  uuid.UUID `json:"plugin_id"`
	Timestamp time.Time `json:"timestamp"`
}

// Plugin says that a plugin was created, updated, enabled, disabled or deleted.
func Plugin(what string, id uuid.UUID) Event {
	return Event{Topic: Entities, Kind: "plugin_" + what, Permission: "PluginsManage", Data: pluginData{"plugin_" + what, id, now()}}
}

type writtenData struct {
	seriesData
	PluginID      uuid.UUID `json:"plugin_id"`
	FieldsUpdated []string  `json:"fields_updated"`
}

// SeriesMetadataUpdated says which fields of a series a plugin has written.
func SeriesMetadataUpdated(s Series, plugin uuid.UUID, fields ...string) Event {
	e := seriesEvent("series_metadata_updated", s)
	e.Data = writtenData{e.Data.(seriesData), plugin, fields}
	return e
}

// Release is a release of a series, announced by a source of a plugin (its name).
type Release struct {
	ID, SeriesID, SourceID uuid.UUID
	SeriesTitle, Plugin    string
	Volume, Chapter        *float64
	Language               string
}

type releaseData struct {
	Type        string    `json:"type"`
	LedgerID    uuid.UUID `json:"ledger_id"`
	SeriesID    uuid.UUID `json:"series_id"`
	SeriesTitle string    `json:"series_title"`
	SourceID    uuid.UUID `json:"source_id"`
	PluginID    string    `json:"plugin_id"`
	Chapter     *float64  `json:"chapter"`
	Volume      *float64  `json:"volume"`
	Language    string    `json:"language"`
	Timestamp   time.Time `json:"timestamp"`
}

// ReleaseAnnounced says that a new release of a series was announced. Because it names the series, only listeners who
// see all series receive it.
func ReleaseAnnounced(r Release) Event {
	return Event{Topic: Entities, Kind: "release_announced", Permission: SeesAll, Data: releaseData{
		Type: "release_announced", LedgerID: r.ID, SeriesID: r.SeriesID, SeriesTitle: r.SeriesTitle, SourceID: r.SourceID,
		PluginID: r.Plugin, Chapter: r.Chapter, Volume: r.Volume, Language: r.Language, Timestamp: now()}}
}

type polledData struct {
	Type      string    `json:"type"`
	SourceID  uuid.UUID `json:"source_id"`
	PluginID  string    `json:"plugin_id"`
	HadError  bool      `json:"had_error"`
	Timestamp time.Time `json:"timestamp"`
}

// ReleaseSourcePolled says that a source of a plugin (its name) was polled.
func ReleaseSourcePolled(source uuid.UUID, plugin string, failed bool) Event {
	return Event{Topic: Entities, Kind: "release_source_polled", Permission: "PluginsManage",
		Data: polledData{"release_source_polled", source, plugin, failed, now()}}
}

func bookEvent(kind string, b Book) Event {
	return Event{Topic: Entities, Kind: kind, Permission: "BooksRead",
		Data: bookData{kind, b.ID, b.SeriesID, b.LibraryID, now()}}
}

func seriesEvent(kind string, s Series) Event {
	return Event{Topic: Entities, Kind: kind, Permission: "SeriesRead",
		Data: seriesData{kind, s.ID, s.LibraryID, now()}}
}

func libraryEvent(kind string, id uuid.UUID) Event {
	return Event{Topic: Entities, Kind: kind, Permission: "LibrariesRead",
		Data: libraryData{kind, id, now()}}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
