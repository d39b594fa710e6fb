package page

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/deaf"
	"github.com/longbox/longbox/shared/platform/fault"
)

// Readers that stop reading keep the memory of their pages. One more of the tenant is refused, and served when one of
// them has ended; another tenant is served meanwhile.
func TestReadersThatStopReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Server{})
		const size = 60 << 20
		hold := func(n int64) func() {
			t.Helper()
			give, err := s.Hold(t.Context(), n, Patience)
			if err != nil {
				t.Fatal(err)
			}
			return give
		}
		first, second := hold(size), hold(size)
		began := time.Now()
		var refused *fault.Error
		if _, err := s.Hold(t.Context(), size, Patience); !errors.As(err, &refused) || refused.Code != fault.Unavailable || refused.RetryAfter == 0 || time.Since(began) != Patience {
			t.Errorf("after %s one more is told %v", time.Since(began), err)
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.Hold(left, size, Patience); !errors.Is(err, context.Canceled) {
			t.Errorf("who left is told %v", err)
		}
		hold(uncounted)() // a small page waits for nobody
		other, err := s.costly.memory.take(t.Context(), uuid.New(), uuid.Nil, heldOfTenant)
		if err != nil {
			t.Fatal(err)
		}
		other()
		first()
		third := hold(size)
		second()
		third()
		hold(4 * held)() // a page that is larger than all of it is alone
		if !s.costly.memory.all.TryAcquire(held) {
			t.Error("some of it was never given back")
		}
	})
}

// A user who reads large pages slowly waits alone: the others of the tenant get theirs.
func TestOneSlowReaderOfATenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(Server{})
		slow, other := db.In(t.Context(), &auth.Caller{AccountID: uuid.New()}), db.In(t.Context(), &auth.Caller{AccountID: uuid.New()})
		first, err := s.Hold(slow, 40<<20, Patience)
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan error)
		go func() {
			_, err := s.Hold(slow, 40<<20, Patience)
			waits <- err
		}()
		synctest.Wait()
		give, err := s.Hold(other, held, Brief) // more than everything counts as the account's share
		if err != nil {
			t.Fatalf("another user is told %v", err)
		}
		give()
		var refused *fault.Error
		if err := <-waits; !errors.As(err, &refused) || refused.Code != fault.Unavailable {
			t.Errorf("a second page is told %v", err)
		}
		first()
		again, err := s.Hold(slow, 40<<20, Brief)
		if err != nil {
			t.Fatal(err)
		}
		again()
		if !s.costly.memory.all.TryAcquire(held) {
			t.Error("some of it was never given back")
		}
	})
}

// A page that was unpacked or drawn counts until its client has read it.
func TestPagesCountWhileTheyAreSent(t *testing.T) {
	picture := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 2*uncounted)...)
	size := int64(len(picture))
	file := zstdZip(t, "1.png", picture)
	s, i := memory(t, file)
	s.Content.Draw = func(context.Context, io.ReaderAt, int64, int) ([]byte, error) { return picture, nil }
	dir, err := archive.ReadDirectory(file, int64(len(file)), s.Content.Limits, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := dir.Entries[0]
	i.First, i.Count, i.Fingerprint, i.Names, i.Types = 1, 2, strings.Repeat("0", 32), []string{"1.png", "2"}, []string{"image/png", "image/jpeg"}
	i.Offsets, i.Lengths, i.Packed, i.Sizes = []int64{e.Offset, 0}, []int64{e.Length, 0}, []int64{e.CompressedSize, 0}, []int64{size, 0}
	drawn := archive.PDFPage
	i.Methods, i.CRCs = []int16{int16(e.Method), int16(drawn)}, []int64{int64(e.CRC32), 0}
	for name, send := range map[string]func(w slow) error{
		"unpacked": func(w slow) error { return s.Original(w, httptest.NewRequest("GET", "/", nil), i, 1) },
		"drawn":    func(w slow) error { return s.Original(w, httptest.NewRequest("GET", "/", nil), i, 2) },
		"of EPUB":  func(w slow) error { return s.Resource(w, httptest.NewRequest("GET", "/", nil), i, "1.png") },
	} {
		w := slow{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		ended := make(chan error)
		go func() { ended <- send(w) }()
		select {
		case <-w.comes:
		case err := <-ended:
			t.Fatalf("%s: %v", name, err)
		}
		if all := s.costly.memory.all; all.TryAcquire(held-size+1) || !all.TryAcquire(held-size) {
			t.Errorf("%s: it is not counted", name)
		} else {
			all.Release(held - size)
		}
		close(w.released)
		if err := <-ended; err != nil || int64(w.Body.Len()) != size || !s.costly.memory.all.TryAcquire(held) {
			t.Fatalf("%s: %d bytes came, then it still counts; %v", name, w.Body.Len(), err)
		}
		s.costly.memory.all.Release(held)
	}
}

// timed is a connection that records its deadlines.
type timed struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *timed) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// A page that is held has a time to be read in, by its size; the next response on the connection has none.
func TestTimeForWhatIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for n, want := range map[int][]time.Time{uncounted: nil, 1 << 20: {time.Now().Add(deaf.After + 32*time.Second), {}}} {
			w := &timed{ResponseRecorder: httptest.NewRecorder()}
			CopyHeld(w, httptest.NewRequest("GET", "/", nil), make([]byte, n))
			if !slices.Equal(w.set, want) || w.Body.Len() != n {
				t.Errorf("%d bytes: %d were sent, by %v, want %v", n, w.Body.Len(), w.set, want)
			}
		}
	})
}
