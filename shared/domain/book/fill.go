package book

import "github.com/longbox/longbox/shared/platform/db"

// Fill backfills the release day of books whose metadata was written before that day was stored. Each batch of it
// blocks the scans of its tenant until it commits.
var Fill = db.Fill{Table: "release_fill", Function: "app.fill_release_days", AtOnce: 1000, What: "the release days of books"}
