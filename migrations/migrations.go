// Package migrations is the database schema: plain SQL in the order of its numbers, embedded in the programs
// that apply it.
package migrations

import "embed"

// FS holds the SQL files.
//
//go:embed *.sql
var FS embed.FS
