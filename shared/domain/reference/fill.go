package reference

import "github.com/longbox/longbox/shared/platform/db"

// Fill keeps what is searched for in titles that were written before it was kept. For the titles of one transaction the
// scans of their tenant wait.
var Fill = db.Fill{Table: "alternate_title_fill", Function: "app.fill_alternate_titles", AtOnce: 1000, What: "what is searched for in alternate titles"}
