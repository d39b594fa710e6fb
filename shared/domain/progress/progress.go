package progress

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Record is one user's progress in one book (contract 2.7).
type Record struct {
	ID                 uuid.UUID  `json:"id" db:"id"`
	UserID             uuid.UUID  `json:"userId" db:"account_id"`
	BookID             uuid.UUID  `json:"bookId" db:"book_id"`
	CurrentPage        int32      `json:"currentPage" db:"current_page" doc:"From 1; 0 before the first page"`
	ProgressPercentage *float64   `json:"progressPercentage" db:"percentage" doc:"0 to 1: as sent for EPUB, else current page over pages"`
	Completed          bool       `json:"completed" db:"completed"`
	CompletedAt        *time.Time `json:"completedAt" db:"completed_at"`
	StartedAt          time.Time  `json:"startedAt" db:"started_at"`
	UpdatedAt          time.Time  `json:"updatedAt" db:"updated_at"`
}

// CompleteAt is the share of a book from which it counts as read.
const CompleteAt = 0.98

// Percentage is the SQL of a record's percentage, given the aliases of its progress and book rows.
func Percentage(p, b string) string {
	return "case when lower(" + b + ".format) = 'epub' then " + p + ".percentage when " + b + ".page_count > 0 then " +
		"least(1, " + p + ".current_page::double precision / " + b + ".page_count) end"
}

// Columns is the SQL of a Record's columns, given the same aliases.
func Columns(p, b string) string {
	return p + ".id, " + p + ".account_id, " + p + ".book_id, " + p + ".current_page, " + Percentage(p, b) + " as percentage, " +
		p + ".completed, " + p + ".completed_at, " + p + ".started_at, " + p + ".updated_at"
}

// Update is what a reader sends.
type Update struct {
	CurrentPage        int32    `json:"currentPage" minimum:"0" maximum:"2147483647" doc:"From 1; 0 before the first page"`
	ProgressPercentage *float64 `json:"progressPercentage,omitempty" minimum:"0" maximum:"1"`
	Completed          *bool    `json:"completed,omitempty" doc:"Absent: decided by page and percentage"`
}

// Marked says how many books were marked.
type Marked struct {
	Count   int64  `json:"count"`
	Message string `json:"message"`
}

// MarkedAs is the answer when n books were marked as read or unread.
func MarkedAs(word string, n int64, err error) (*Marked, error) {
	if err != nil {
		return nil, err
	}
	return &Marked{Count: n, Message: fmt.Sprintf("%d books are marked as %s", n, word)}, nil
}
