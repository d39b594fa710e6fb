package statistic

import (
	"time"

	"github.com/google/uuid"
)

// Duration is a reading time in milliseconds.
type Duration struct {
	TotalMS    int64 `json:"totalMs" minimum:"0"`
	MeasuredMS int64 `json:"measuredMs" minimum:"0" doc:"Time reported by clients"`
	InferredMS int64 `json:"inferredMs" minimum:"0" doc:"Time between successive writes of progress"`
}

// Read is how much was read.
type Read struct {
	Sessions      int64    `json:"sessions" minimum:"0"`
	Duration      Duration `json:"duration"`
	PagesRead     int64    `json:"pagesRead" minimum:"0" doc:"Only from sessions whose client reports pages"`
	BooksFinished int64    `json:"booksFinished" minimum:"0"`
}

// Summary covers the whole period.
type Summary struct {
	Read
	Books                   int64 `json:"books" minimum:"0" doc:"Number of different books read"`
	SessionsWithoutDuration int64 `json:"sessionsWithoutDuration" minimum:"0" doc:"Number of sessions of unknown duration"`
	SessionsWithoutPages    int64 `json:"sessionsWithoutPages" minimum:"0" doc:"Number of sessions with an unknown number of pages"`
}

// Period is a day, a week or a month.
type Period struct {
	Bucket string `json:"bucket" format:"date" doc:"First day of the period, in UTC; weeks start on Monday"`
	Read
}

// Series is a series with sessions.
type Series struct {
	SeriesID   uuid.UUID `json:"seriesId"`
	SeriesName string    `json:"seriesName"`
	Books      int64     `json:"books" minimum:"0" doc:"Number of different books read"`
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
	LastReadAt time.Time `json:"lastReadAt" doc:"Time of the device's last session within the period"`
	Read
}

// Statistics cover a period.
type Statistics struct {
	From        time.Time `json:"from"`
	To          time.Time `json:"to"`
	Granularity string    `json:"granularity" enum:"day,week,month"`
	Summary     Summary   `json:"summary"`
	Periods     []Period  `json:"periods" nullable:"false" doc:"Periods with reading sessions, in chronological order"`
	Series      []Series  `json:"series" nullable:"false" doc:"The first seriesLimit series, in the requested order"`
	Formats     []Format  `json:"formats" nullable:"false" doc:"Longest read first"`
	Devices     []Device  `json:"devices" nullable:"false" doc:"Most recently used first"`
}

// Coverage is the time span of all the caller's sessions.
type Coverage struct {
	FirstReadAt *time.Time `json:"firstReadAt" db:"first_read_at"`
	LastReadAt  *time.Time `json:"lastReadAt" db:"last_read_at"`
}
