package blob_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

func TestUploadInParts(t *testing.T) {
	s := testkit.StartS3(t)
	media, ctx := s.Config.Media(), t.Context()
	piece := bytes.Repeat([]byte("0123456789"), 10_000)
	for _, pieces := range []int{0, 1, 250} { // nothing, one request, three parts and a rest
		o, err := media.Upload(ctx, "media", "t/pack/a", "application/zip", func(u *blob.Writer) error {
			for range pieces {
				if _, err := u.Write(piece); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || o.Size != int64(pieces*len(piece)) || o.ETag == "" {
			t.Fatalf("%d pieces: %+v, %v", pieces, o, err)
		}
		body, stored, err := media.Get(ctx, "media", "t/pack/a")
		if err != nil || stored.ETag != o.ETag || stored.Size != o.Size {
			t.Fatalf("%+v, %v", stored, err)
		}
		got, err := io.ReadAll(body)
		if err != nil || !bytes.Equal(got, bytes.Repeat(piece, pieces)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		body.Close()
		if pieces > 0 {
			if data, err := media.ReadRange(ctx, "media", o, int64(len(piece))-5, 5); err != nil || string(data) != "56789" {
				t.Errorf("%q, %v", data, err)
			}
		}
	}
}

func TestFailedUploadLeavesNothing(t *testing.T) {
	s := testkit.StartS3(t)
	media, broken := s.Config.Media(), errors.New("the source broke")
	_, err := media.Upload(t.Context(), "media", "t/pack/b", "application/zip", func(u *blob.Writer) error {
		for range 100 {
			if _, err := u.Write(make([]byte, 100_000)); err != nil {
				return err
			}
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if _, _, err := media.Get(t.Context(), "media", "t/pack/b"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// A silent store does not block a caller who gives up an upload: the time for cleaning up is limited.
func TestGivingUpIsBounded(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	silent := make(chan struct{})
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			<-silent
		case r.Method == http.MethodPost:
			_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
		default:
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"e"`)
		}
	}))
	defer store.Close()
	defer close(silent)
	media, broken, began := blob.Config{MediaEndpoint: store.URL, PathStyle: true, Region: "us-east-1"}.Media(), errors.New("the source broke"), time.Now()
	_, err := media.Upload(t.Context(), "media", "t/pack/c", "application/zip", func(u *blob.Writer) error {
		if _, err := u.Write(make([]byte, 9<<20)); err != nil {
			return err
		}
		return broken
	})
	if took := time.Since(began); !errors.Is(err, broken) || took > 15*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

func TestReaderAtReadsWindows(t *testing.T) {
	s := testkit.StartS3(t, "books")
	data := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	testkit.WriteFile(t, s.Dir, "books/a", data)
	o := listed(t, s, "books")["a"]
	at := s.Store.ReaderAt(t.Context(), "books", o, 1000)
	at.Keep(o.Size-100, data[o.Size-100:])
	s.Counter.Reset()
	for _, c := range []struct {
		off  int64
		n    int
		gets int
	}{{0, 10, 1}, {500, 400, 0}, {o.Size - 50, 50, 0}, {500_000, 10, 1}, {500_900, 50, 0}, {500_990, 100, 1}, {510_000, 1000, 0}, {0, 10, 0}} {
		b := make([]byte, c.n)
		if _, err := at.ReadAt(b, c.off); err != nil || !bytes.Equal(b, data[c.off:c.off+int64(c.n)]) {
			t.Errorf("%d bytes at %d: %v", c.n, c.off, err)
		}
		if gets := len(s.Counter.Reset()); gets != c.gets {
			t.Errorf("%d bytes at %d: %d requests, want %d", c.n, c.off, gets, c.gets)
		}
	}
	at.Window(1000, 400)
	s.Counter.Reset()
	for _, off := range []int64{700_000, 699_600, 700_500} {
		b := make([]byte, 100)
		if _, err := at.ReadAt(b, off); err != nil || !bytes.Equal(b, data[off:off+100]) {
			t.Errorf("at %d: %v", off, err)
		}
	}
	if gets := len(s.Counter.Reset()); gets != 1 {
		t.Errorf("%d requests for what lies in one window", gets)
	}
	b := make([]byte, 100)
	if n, err := at.ReadAt(b, o.Size-10); n != 10 || err != io.EOF {
		t.Errorf("over the end: %d, %v", n, err)
	}
	if _, err := at.Bytes(o.Size-5, 10); !errors.Is(err, blob.ErrRange) {
		t.Errorf("outside: %v", err)
	}
}
