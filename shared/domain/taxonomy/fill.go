package taxonomy

import "github.com/longbox/longbox/shared/platform/db"

// Fill backfills the genres and tags of books that were read before books had any. Each batch of it blocks the scans of
// its tenant until it commits.
var Fill = db.Fill{Table: "term_fill", Function: "app.fill_terms", AtOnce: 1000, What: "the genres and tags of books"}
