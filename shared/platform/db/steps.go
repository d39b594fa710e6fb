package db

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Limits of Steps.
const (
	stepMost = 5000
	stepFast = 2 * time.Second
	stepSlow = 4 * time.Second // several attempts must fit into a request
)

// Steps divides long work into transactions. How many rows each of them has depends on how long the last one took.
type Steps struct {
	Size int // rows of the next step
}

// Next runs do with the number of rows and the time limit for a statement (see StatementTimeout). If that is too short,
// do is repeated with fewer rows, and with one row it has no limit.
func (s *Steps) Next(do func(rows int, limit time.Duration) error) error {
	for {
		limit := stepSlow
		if s.Size <= 1 {
			s.Size, limit = 1, 0
		}
		start := time.Now()
		err := do(s.Size, limit)
		var pg *pgconn.PgError
		switch {
		case err == nil:
			if time.Since(start) < stepFast {
				s.Size = min(2*s.Size, max(s.Size, stepMost))
			}
			return nil
		case s.Size == 1 || !errors.As(err, &pg) || pg.Code != "57014": // not a statement timeout
			return err
		}
		s.Size /= 4
	}
}
