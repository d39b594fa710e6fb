package events

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// ID is the position of an event in its stream: Redis' milliseconds and sequence number.
type ID struct{ Millis, Seq uint64 }

// ParseID parses "<milliseconds>-<sequence>", the form that Redis writes and clients send back.
func ParseID(s string) (ID, error) {
	first, second, ok := strings.Cut(s, "-")
	if !ok || len(s) > 41 {
		return ID{}, fmt.Errorf("event id %.60q: want <milliseconds>-<sequence>", s)
	}
	millis, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("event id %q: the milliseconds are not a number", s)
	}
	seq, err := strconv.ParseUint(second, 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("event id %q: the sequence is not a number", s)
	}
	return ID{millis, seq}, nil
}

// String writes the form that [ParseID] reads.
func (id ID) String() string {
	return strconv.FormatUint(id.Millis, 10) + "-" + strconv.FormatUint(id.Seq, 10)
}

// Compare returns -1, 0 or +1 if id is before, at or after other.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Millis, other.Millis), cmp.Compare(id.Seq, other.Seq))
}
