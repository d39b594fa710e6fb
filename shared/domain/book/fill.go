package book

import "github.com/longbox/longbox/shared/platform/db"

// Fill keeps the day that books came out with those whose metadata was written before it was kept. For the books of one
// transaction the scans of their tenant wait.
var Fill = db.Fill{Table: "release_fill", Function: "app.fill_release_days", AtOnce: 1000, What: "the days that books came out"}
