package scanner

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
)

// place is how far a scan has come. It is what a scan leaves when its time is up, and what the next run of the task
// goes on from; a run that died without leaving one is begun anew.
type place struct {
	Ranges   []keyRange // not listed yet
	Listed   int64      // book files in the ranges that are
	Vanished []gone     // not marked deleted yet
	Deleted  int        // that are
	Emptied  bool       // an attempt that died has marked all books of a series deleted
	Lost     []lostSidecar
	Unlisted []string    // folders of which nothing is known, as whole prefixes
	Touched  []uuid.UUID // series to renumber
	CatchUp  bool        // sidecars are to be taken in, and series arranged, that an earlier scan has left
}

// MarshalJSON writes [from, to].
func (r keyRange) MarshalJSON() ([]byte, error) { return json.Marshal([2]string{r.from, r.to}) }

// UnmarshalJSON reads [from, to].
func (r *keyRange) UnmarshalJSON(data []byte) error {
	var ends [2]string
	err := json.Unmarshal(data, &ends)
	r.from, r.to = ends[0], ends[1]
	return err
}

// pause is the error with which the scan stops at its place.
func (s *run) pause() error {
	s.at.Touched = slices.Collect(maps.Keys(s.touched))
	return task.Paused(s.at)
}
