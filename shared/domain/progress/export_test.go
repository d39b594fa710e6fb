package progress

// ListSQL and CountSQL are the statements of the list.
var (
	ListSQL  = listSQL()
	CountSQL = countSQL
)

// BookHistory, SeriesHistory and ForgetSeries are the statements of the history: $1 is a book or a series, $2 a limit.
const (
	BookHistory   = bookReadings
	SeriesHistory = seriesReadings + "select * from readings order by nth desc limit $2"
	ForgetSeries  = forgetSQL + ofSeriesBooks
)

// Writes are the statements that write what a user has read: $1 is the ids of books, or of their series; $2 of WritesBy the device.
var (
	Writes   = []string{adopt(ofBooks), adopt(ofSeries), fold(ofBooks) + records(), fold(there(ofSeries)) + "select count(*) from written"}
	WritesBy = []string{note(toTheEnd(ofBooks), "$2"), note(toTheEnd(ofSeries), "$2"), reset(there(ofBooks), "$2"), reset(there(ofSeries), "$2")}
)

// RecordSQL is the statement that logs a session, and MaxSessions how many are kept.
var RecordSQL, MaxSessions = recordSQL, maxSessions
