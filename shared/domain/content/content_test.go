package content_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/platform/blob"
)

// An entry that says of itself to be small, and whose packed bytes are many, is refused before they are read: they would
// have to lie in memory.
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
