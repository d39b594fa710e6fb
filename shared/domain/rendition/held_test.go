package rendition

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/platform/fault"
)

// stalled is a client that reads nothing until it is released.
type stalled struct {
	*httptest.ResponseRecorder
	released chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	<-s.released
	return s.ResponseRecorder.Write(p)
}

// Rendered pages count as held in memory until their clients have read them.
func TestReadersThatStopReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &Maker{Pages: page.NewServer(page.Server{})}
		img := &image{data: make([]byte, 48<<20), kind: "image/png"}
		r, released, ended := httptest.NewRequest("GET", "/", nil), make(chan struct{}), make(chan error, 2)
		for range cap(ended) {
			go func() { ended <- m.send(stalled{httptest.NewRecorder(), released}, r, img, `"tag"`, page.Immutable) }()
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		if err := m.send(w, r, img, `"tag"`, page.Immutable); !fault.Is(err, fault.Unavailable) || len(w.Header()) != 0 {
			t.Errorf("one more is told %v, with %v", err, w.Header())
		}
		close(released)
		for range cap(ended) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if err := m.send(w, r, img, `"tag"`, page.Immutable); err != nil || w.Body.Len() != len(img.data) {
			t.Errorf("%d bytes after they have ended, %v", w.Body.Len(), err)
		}
	})
}
