package progress

// ListSQL and CountSQL are the statements of the list.
var (
	ListSQL  = listSQL()
	CountSQL = countSQL
)
