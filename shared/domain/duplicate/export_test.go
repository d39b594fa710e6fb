package duplicate

// GroupsSQL lists the groups of books that are shown.
const GroupsSQL = "select g.id, m.books" + shown + " order by g.created_at, g.id limit 50"

// SeriesSQL lists the groups of series that are shown.
const SeriesSQL = "select g.id, m.series" + shownSeries + " order by g.created_at, g.id limit 50"
