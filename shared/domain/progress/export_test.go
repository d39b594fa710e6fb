package progress

// ListSQL and CountSQL are the statements of the list.
var (
	ListSQL  = listSQL()
	CountSQL = countSQL
)

// Marks are the statements that mark books: $1 is their ids, or those of their series.
var Marks = []string{markRead(ofBooks), markUnread(ofBooks), markRead(ofSeries), markUnread(ofSeries)}
