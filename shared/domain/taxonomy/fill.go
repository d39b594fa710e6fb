package taxonomy

import "github.com/longbox/longbox/shared/platform/db"

// Fill gives books that were read before there were genres and tags of books those that their files named then. For the
// books of one transaction the scans of their tenant wait.
var Fill = db.Fill{Table: "term_fill", Function: "app.fill_terms", AtOnce: 1000, What: "the genres and tags that the files of books name"}
