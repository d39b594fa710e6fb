package progress

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Record is one user's progress in one book.
type Record struct {
	ID                 uuid.UUID  `json:"id" db:"id"`
	UserID             uuid.UUID  `json:"userId" db:"account_id"`
	BookID             uuid.UUID  `json:"bookId" db:"book_id"`
	CurrentPage        int32      `json:"currentPage" db:"current_page" doc:"Page number from 1; 0 means before the first page"`
	ProgressPercentage *float64   `json:"progressPercentage" db:"percentage" doc:"Fraction from 0 to 1: as sent for an EPUB, else current page divided by page count"`
	Completed          bool       `json:"completed" db:"completed"`
	CompletedAt        *time.Time `json:"completedAt" db:"completed_at"`
	StartedAt          time.Time  `json:"startedAt" db:"started_at"`
	UpdatedAt          time.Time  `json:"updatedAt" db:"updated_at"`
}

// completeAt is the share of a book from which it counts as completed.
const completeAt = 0.98

// PercentageSQL is SQL for a record's percentage, from progress p and book b.
const PercentageSQL = "case when lower(b.format) = 'epub' then p.percentage when b.page_count > 0 then " +
	"least(1, p.current_page::double precision / b.page_count) end"

// pageAt is SQL for the page of book b that a share of the book is on. A share of a page's end that was rounded, also
// to single precision, still is on that page: 0.07 * 100 is more than 7.
func pageAt(share string) string { return "ceil(" + share + " * b.page_count - 0.001)::integer" }

// columns is SQL for a Record's columns, from progress p and book b.
const columns = "p.id, p.account_id, p.book_id, p.current_page, " + PercentageSQL + " as percentage, " +
	"p.completed, p.completed_at, p.started_at, p.updated_at"

// Update is the progress that a client sends.
type Update struct {
	CurrentPage        int32    `json:"currentPage" minimum:"0" maximum:"2147483647" doc:"Page number from 1; 0 means before the first page"`
	ProgressPercentage *float64 `json:"progressPercentage,omitempty" minimum:"0" maximum:"1" nullable:"true"`
	Completed          *bool    `json:"completed,omitempty" doc:"Whether the book is completed; by default decided by page and percentage"`

	fetched bool // see Fetched
}

// Session is one sitting with a book as the client reports it. The client chooses the id and may send the same session
// again.
type Session struct {
	ID               uuid.UUID `json:"id" format:"uuid"`
	BookID           uuid.UUID `json:"bookId" format:"uuid"`
	DeviceID         string    `json:"deviceId" minLength:"1" maxLength:"128" doc:"Id of the device, truncated if longer; if empty, derived from how the client signs in"`
	DeviceName       *string   `json:"deviceName,omitempty" maxLength:"200" doc:"Name of the device, truncated if longer"`
	Kind             string    `json:"kind" enum:"progress,completed,reset" doc:"Other values are rejected as invalid_measurement; reset starts the book again, and earlier reading no longer counts for its progress"`
	ClientStartedAt  time.Time `json:"clientStartedAt"`
	ClientEndedAt    time.Time `json:"clientEndedAt" doc:"Sessions count in the order of their end times; future times count as now"`
	ToPage           *int32    `json:"toPage,omitempty" minimum:"0" maximum:"2147483647" doc:"Page at the end of the session, from 1"`
	ToPercentage     *float64  `json:"toPercentage,omitempty" minimum:"0" maximum:"1"`
	ActiveDurationMS *int64    `json:"activeDurationMs,omitempty" minimum:"0" doc:"Time spent reading, in milliseconds; limited to the time between start and end"`
	PagesRead        *int32    `json:"pagesRead,omitempty" minimum:"0" maximum:"2147483647"`
	Locator          *string   `json:"r2Progression,omitempty" maxLength:"10000" doc:"Readium locator as JSON text; ignored if longer or not a JSON object"`

	unnamed bool   // there is no id to reject it by
	unread  string // why it is rejected, if it could not be decoded
}

// Recorded is the response to sessions: those in the log, new or old; the progress in their books; and those rejected.
type Recorded struct {
	Accepted []uuid.UUID `json:"accepted"`
	Progress []Record    `json:"progress"`
	Rejected []Rejected  `json:"rejected"`
}

// Rejected is a session that was rejected; the others of the request are accepted.
type Rejected struct {
	ID     uuid.UUID `json:"id"`
	Reason string    `json:"reason" enum:"book_not_found,invalid_time_range,invalid_percentage,invalid_measurement,duplicate_in_batch"`
}

// Marked is the number of books that were marked.
type Marked struct {
	Count   int64  `json:"count"`
	Message string `json:"message"`
}

// MarkedAs returns the response for n books marked as read or unread.
func MarkedAs(word string, n int64, err error) (*Marked, error) {
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return &Marked{Count: n, Message: "1 book is marked as " + word}, nil
	}
	return &Marked{Count: n, Message: fmt.Sprintf("%d books are marked as %s", n, word)}, nil
}
