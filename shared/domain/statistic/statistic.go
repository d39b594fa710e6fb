package statistic

import (
	"time"

	"github.com/google/uuid"
)

// Duration is a reading time in milliseconds.
type Duration struct {
	TotalMS    int64 `json:"totalMs" minimum:"0"`
	MeasuredMS int64 `json:"measuredMs" minimum:"0" doc:"As clients said"`
	InferredMS int64 `json:"inferredMs" minimum:"0" doc:"From one write of progress to the next"`
}

// Read is how much was read.
type Read struct {
	Sessions      int64    `json:"sessions" minimum:"0"`
	Duration      Duration `json:"duration"`
	PagesRead     int64    `json:"pagesRead" minimum:"0" doc:"Of the sessions whose client says"`
	BooksFinished int64    `json:"booksFinished" minimum:"0"`
}

// Summary covers the whole period.
type Summary struct {
	Read
	Books                   int64 `json:"books" minimum:"0" doc:"That were read in"`
	SessionsWithoutDuration int64 `json:"sessionsWithoutDuration" minimum:"0" doc:"Of which nobody knows how long they were"`
	SessionsWithoutPages    int64 `json:"sessionsWithoutPages" minimum:"0" doc:"Of which nobody knows how many pages"`
}

// Period is a day, a week or a month.
type Period struct {
	Bucket string `json:"bucket" format:"date" doc:"Its first day, in UTC; weeks begin on Monday"`
	Read
}

// Series is a series with sessions.
type Series struct {
	SeriesID   uuid.UUID `json:"seriesId"`
	SeriesName string    `json:"seriesName"`
	Books      int64     `json:"books" minimum:"0" doc:"That were read in"`
	Read
}

// Format is a file format.
type Format struct {
	Format string `json:"format" example:"cbz"`
	Read
}

// Device is a reading device.
type Device struct {
	DeviceID   string    `json:"deviceId"`
	DeviceName *string   `json:"deviceName"`
	LastReadAt time.Time `json:"lastReadAt" doc:"In the span"`
	Read
}

// Statistics cover a period.
type Statistics struct {
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	Granularity string    `json:"granularity" enum:"day,week,month"`
	Summary     Summary   `json:"summary"`
	Periods     []Period  `json:"periods" nullable:"false" doc:"In which something was read, in their order"`
	Series      []Series  `json:"series" nullable:"false" doc:"The first by the order that was asked for"`
	Formats     []Format  `json:"formats" nullable:"false" doc:"The longest read first"`
	Devices     []Device  `json:"devices" nullable:"false" doc:"The last used first"`
}

// Coverage is the time span of all the caller's sessions.
type Coverage struct {
	FirstReadAt *time.Time `json:"firstReadAt" db:"first_read_at"`
	LastReadAt  *time.Time `json:"lastReadAt" db:"last_read_at"`
}
