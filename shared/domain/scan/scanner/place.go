package scanner

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/task"
)

// place is the checkpoint of a scan. A scan stores it when its time is up, and the next run of the task continues from
// it; a run that died without storing one starts over.
type place struct {
	Ranges   []keyRange // still to list
	Listed   int64      // book files in the listed ranges
	Vanished []lostBook // still to mark deleted
	Deleted  int        // number marked deleted
	Emptied  bool       // an attempt that died had marked all books of a series deleted
	Lost     []lostSidecar
	Unlisted []string    // folders that could not be listed, as full prefixes
	Touched  []uuid.UUID // series to renumber
	Spent    time.Duration
	CatchUp  bool // process sidecars, and arrange series, that an earlier scan has left
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

// pause returns the error with which the scan stops at its checkpoint.
func (r *run) pause() error {
	r.at.Spent += time.Since(r.begun)
	r.at.Touched = slices.Collect(maps.Keys(r.touched))
	return task.Paused(r.at)
}
