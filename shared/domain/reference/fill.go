package reference

import "github.com/longbox/longbox/shared/platform/db"

// Fill backfills the search text of alternate titles that were written before that text was stored. Each batch of it
// blocks the scans of its tenant until it commits.
var Fill = db.Fill{Table: "alternate_title_fill", Function: "app.fill_alternate_titles", AtOnce: 1000, What: "the search texts of alternate titles"}
