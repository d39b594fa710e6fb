package page

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/format/archive"
)

// A file that makes its reader panic costs whoever asks for the page an answer, not everybody the process.
func TestAPanicEndsOnlyItsPage(t *testing.T) {
	t.Parallel()
	s := NewServer(Server{})   // without Content, reading panics
	for range dearAtOnce + 1 { // which keeps no slot
		if _, err := s.extract(t.Context(), &Index{}, 1, archive.Entry{Length: 1}); err == nil || !strings.HasPrefix(err.Error(), "panic: ") {
			t.Errorf("%v, want that it panicked", err)
		}
	}
}
