package collection

// CollectionsSQL and ReadListsSQL list them: $1 rows after $2.
var (
	CollectionsSQL = collections.listSQL(pageSQL)
	ReadListsSQL   = readLists.listSQL(pageSQL)
)
