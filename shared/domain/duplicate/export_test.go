package duplicate

// SeriesSQL lists the groups of series that are shown.
const SeriesSQL = "select g.id, m.series" + shownSeries + " order by g.created_at, g.id limit 50"
