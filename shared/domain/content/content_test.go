package content_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
)

// An entry with a small declared size but many compressed bytes is rejected before reading: they would have to fit in
// memory.
func TestPackedBytesAreBounded(t *testing.T) {
	t.Parallel()
	asked := 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(store.Close)
	r := &content.Reader{Store: blob.Config{LibraryEndpoint: store.URL, Region: "us-east-1", PathStyle: true}.Library()}
	const size = 3_900_000_000
	for _, method := range []uint16{archive.Deflated, archive.RAR5} {
		e := archive.Entry{Name: "2.jpg", Method: method, Size: 1000, CompressedSize: size, Length: size}
		_, err := r.Bytes(t.Context(), "books", blob.Object{Key: "a.cbz", Size: size}, e)
		if large, ok := errors.AsType[*archive.Error](err); !ok || large.Kind != archive.TooLarge || asked != 0 {
			t.Errorf("method %d: %v after %d requests", method, err, asked)
		}
	}
}

// A page that cannot be drawn does not block the others. An error of the whole document ends the walk, and so do
// several pages that time out.
func TestPagesThatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	store := blob.Config{LibraryEndpoint: "http://localhost", Region: "us-east-1", PathStyle: true}.Library()
	of := func(kind archive.Kind) error { return &archive.Error{Kind: kind, Msg: "no picture"} }
	elsewhere := &archive.Undrawn{Err: errors.New("it cannot be started")}
	for name, c := range map[string]struct {
		broken map[int]error
		read   []int // pages
		ends   error
	}{
		"none":            {nil, []int{0, 1, 2, 3, 4, 5}, nil},
		"damaged":         {map[int]error{0: of(archive.Corrupt), 3: of(archive.Corrupt)}, []int{1, 2, 4, 5}, nil},
		"slow":            {map[int]error{1: of(archive.TooLarge)}, []int{0, 2, 3, 4, 5}, nil},
		"many slow":       {map[int]error{0: of(archive.TooLarge), 1: of(archive.TooLarge), 2: of(archive.TooLarge), 4: of(archive.TooLarge)}, []int{3}, of(archive.TooLarge)},
		"encrypted":       {map[int]error{1: of(archive.Encrypted)}, []int{0}, of(archive.Encrypted)},
		"not of the file": {map[int]error{1: elsewhere}, []int{0}, elsewhere},
	} {
		r := &content.Reader{Store: store, Draw: func(_ context.Context, _ io.ReaderAt, _ int64, n int) ([]byte, error) {
			if err := c.broken[n]; err != nil {
				return nil, err
			}
			return []byte{byte(n)}, nil
		}}
		var pages []archive.Entry
		for n := range 6 {
			pages = append(pages, archive.Entry{Method: archive.PDFPage, Offset: int64(n)})
		}
		var read []int
		err := r.Walk(t.Context(), "books", blob.Object{Key: "a.pdf", Size: 1000}, pages, func(i int, content io.Reader) error {
			got, err := io.ReadAll(content)
			if want := c.broken[i]; !errors.Is(err, want) {
				t.Errorf("%s, page %d: %v, want %v", name, i, err, want)
			}
			if err == nil && len(got) == 1 && got[0] == byte(i) {
				read = append(read, i)
			}
			return nil
		})
		if !slices.Equal(read, c.read) || (err == nil) != (c.ends == nil) || err != nil && err.Error() != c.ends.Error() {
			t.Errorf("%s: read %v, %v; want %v, %v", name, read, err, c.read, c.ends)
		}
	}
}
