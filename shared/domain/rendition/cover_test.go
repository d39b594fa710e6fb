package rendition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	stdimage "image"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// drawn returns a Maker of covers that draws pages with draw, and the number of calls.
func drawn(t *testing.T, draw content.Drawing) (m *Maker, times *int) {
	t.Helper()
	s3 := testkit.StartS3(t, "books")
	times = new(int)
	counting := func(ctx context.Context, document io.ReaderAt, size int64, n int) ([]byte, error) {
		*times++
		return draw(ctx, document, size, n)
	}
	return &Maker{Content: &content.Reader{Store: s3.Store, Draw: counting}, Media: s3.Config.Media(), Bucket: "media",
		Renderer: imaging.New(imaging.Config{}), Redis: testkit.Redis(t)}, times
}

// ofPDF is the cover of a book whose first page must be drawn.
func ofPDF() *coverRow {
	zero, method := int64(0), archive.PDFPage
	drawn := int16(method)
	return &coverRow{Cover: Cover{MaxDimension: 400, Quality: 85}, ID: uuid.New(), Key: "a.pdf", Bucket: "books", Size: 1000, Fingerprint: strings.Repeat("a", 64),
		Offset: &zero, Length: &zero, Packed: &zero, Plain: &zero, Method: &drawn, CRC: &zero}
}

// show requests the cover and returns status, type and cache lifetime.
func show(m *Maker, row *coverRow) string {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	if err := m.Cover(w, r, row); err != nil {
		return fmt.Sprint(fault.From(err).Code.Status())
	}
	return fmt.Sprint(w.Code, " ", w.Header().Get("Content-Type"), ", ", w.Header().Get("Cache-Control"))
}

const (
	standIn = "200 image/svg+xml, private, max-age=60"
	real    = "200 image/jpeg, private, max-age=3600"
)

// If drawing fails, a placeholder is shown and there is no retry for a minute; a failure of the store is returned each
// time.
func TestCoverThatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		want  string
		draws int // for two requests
	}{
		"too heavy":  {&archive.Error{Kind: archive.TooLarge, Msg: "page 1 took longer"}, standIn, 1},
		"no PDFium":  {&archive.Undrawn{Err: errors.New("it cannot be started")}, standIn, 1},
		"no time":    {&archive.Undrawn{Err: context.DeadlineExceeded}, standIn, 1},
		"store away": {errors.New("connection refused"), "503", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, times := drawn(t, func(context.Context, io.ReaderAt, int64, int) ([]byte, error) { return nil, c.err })
			row := ofPDF()
			for range 2 {
				if got := show(m, row); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			}
			if *times != c.draws {
				t.Errorf("drawn %d times, want %d", *times, c.draws)
			}
		})
	}
}

// A cover that cannot be read is fetched once a minute, not for every request.
func TestCoverThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m, _ := drawn(t, nil)
	s3 := testkit.StartS3(t, "books")
	m.Content.Store = s3.Store
	if err := s3.Store.Put(t.Context(), "books", "a.cbz", "", []byte("no archive at all, but 41 bytes of a text")); err != nil {
		t.Fatal(err)
	}
	requests := 0
	s3.Counter.Meddle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		requests++
		next.ServeHTTP(w, r)
	})
	row := ofPDF()
	row.Key, row.Size = "a.cbz", 41
	length, method := row.Size, int16(archive.Stored)
	row.Length, row.Packed, row.Plain, row.Method = &length, &length, &length, &method
	for range 3 {
		if got := show(m, row); got != standIn {
			t.Errorf("%s, want %s", got, standIn)
		}
	}
	if requests != 1 {
		t.Errorf("%d requests to the library, want 1", requests)
	}
}

// A request for a slow cover gets the placeholder; the cover is made anyway, and served from then on.
func TestCoverThatTakesLong(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	if err := jpeg.Encode(&page, stdimage.NewGray(stdimage.Rect(0, 0, 60, 90)), nil); err != nil {
		t.Fatal(err)
	}
	finish := make(chan struct{})
	m, times := drawn(t, func(context.Context, io.ReaderAt, int64, int) ([]byte, error) {
		<-finish
		return page.Bytes(), nil
	})
	m.Patience, m.soon = 50*time.Millisecond, time.Hour // it has no database
	m.Turns.Tenants.AtOnce = 1
	busy, err := m.Turns.Take(t.Context(), uuid.Nil, uuid.Nil, 1) // even before its turn
	if err != nil {
		t.Fatal(err)
	}
	row := ofPDF()
	for range 3 {
		if got := show(m, row); got != standIn {
			t.Errorf("while it is drawn: %s", got)
		}
	}
	busy()
	close(finish)
	key := coverKey(uuid.Nil, row.ID, nil, row.Fingerprint, row.Cover)
	made := func(context.Context, func()) (*image, error) { return nil, nil }
	if _, err := m.flights.Do(t.Context(), key, time.Minute, made); err != nil { // waits for it
		t.Fatal(err)
	}
	if got := show(m, row); got != real || *times != 1 {
		t.Errorf("once it is drawn: %s, after %d draws", got, *times)
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	var m memory
	now, broken := time.Now(), errors.New("broken")
	m.note("a", broken, now)
	for after, want := range map[time.Duration]error{0: broken, rememberUnmade - 1: broken, rememberUnmade: nil} {
		if err := m.recall("a", now.Add(after)); !errors.Is(err, want) {
			t.Errorf("after %s: %v", after, err)
		}
	}
	if err := m.recall("b", now); err != nil {
		t.Error(err)
	}
	for i := range 3 * maxUnmade {
		m.note(fmt.Sprint(i), broken, now)
	}
	if len(m.of) > maxUnmade {
		t.Errorf("%d are remembered", len(m.of))
	}
}
