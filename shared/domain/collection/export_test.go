package collection

// CollectionsSQL and ReadListsSQL list them: $1 rows after $2.
var (
	CollectionsSQL = collections.listSQL("order by lower(c.name), c.id limit $1 offset $2")
	ReadListsSQL   = readLists.listSQL("order by lower(c.name), c.id limit $1 offset $2")
)
