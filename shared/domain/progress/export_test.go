package progress

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
)

// MarkUntil marks the books of series as read or unread, until end.
func MarkUntil(ctx context.Context, d *db.DB, series []uuid.UUID, read bool, end time.Time) (int64, error) {
	as := asUnread
	if read {
		as = asRead
	}
	n, _, err := wholeSeries(ctx, d, series, as, end)
	return n, err
}

// ListSQL and CountSQL are the statements of the list.
var (
	ListSQL  = listSQL
	CountSQL = countSQL
)

// BookHistory, SeriesHistory, ForgetBook and ForgetSeries are the statements of the history: $1 is a book or series, $2
// a limit.
var (
	BookHistory, SeriesHistory = subjects[0].entries, subjects[1].entries
	ForgetBook, ForgetSeries   = forgetSome(ofThese(subjects[0].books)), forgetSome(ofThese(subjects[1].books))
)

// Writes are the statements that write progress: $1 are ids of books; in WritesBy $2 is the device.
var (
	Writes   = []string{hold(ofBooks), adopt(ofBooks), fold(ofBooks) + records, fold(there(ofBooks)) + "select count(*) from written"}
	WritesBy = []string{noteRead(ofBooks), reset(there(ofBooks))}
)

// Hashing precedes them.
const Hashing = hashing

// RecordSQL is the statement that logs a session, AbsorbSQL the one that merges positions into measured sessions $1;
// MaxSessions is how many are kept.
var RecordSQL, AbsorbSQL, MaxSessions = recordSQL, absorbSQL, maxSessions
