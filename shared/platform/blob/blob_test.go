package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/testkit"
)

func listed(t testing.TB, s *testkit.S3, bucket string) map[string]blob.Object {
	t.Helper()
	out := map[string]blob.Object{}
	for page, err := range s.Store.List(context.Background(), bucket, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			out[o.Key] = o
		}
	}
	return out
}

func TestReadsAnyName(t *testing.T) {
	s := testkit.StartS3(t, "books")
	names := []string{"plain.cbz", "a b+c&d=e.cbz", "日本/語 #1 (2012).cbz", "100%25.cbz", "q?x;y,z:@!$'()*~.cbz", "é/é.cbz", "tab\there.cbz", `back\slash"quote.cbz`}
	for i, n := range names {
		testkit.WriteFile(t, s.Dir, "books/"+n, []byte(fmt.Sprintf("content of %d", i)))
	}
	all := listed(t, s, "books")
	for i, n := range names {
		o, ok := all[n]
		if !ok {
			t.Errorf("%q is not listed", n)
			continue
		}
		want := fmt.Sprintf("content of %d", i)
		if got, err := s.Store.ReadRange(t.Context(), "books", o, 0, o.Size); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", n, got, err)
		}
		if tail, now, err := s.Store.Tail(t.Context(), "books", n, make([]byte, 4)); err != nil || string(tail) != want[len(want)-4:] || now.Size != o.Size {
			t.Errorf("tail of %q: %q, %+v, %v", n, tail, now, err)
		}
	}
}

func TestFailuresAreToldApart(t *testing.T) {
	s := testkit.StartS3(t, "books")
	path := filepath.Join(s.Dir, "books", "a")
	testkit.WriteFile(t, s.Dir, "books/a", []byte("0123456789"))
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	o := listed(t, s, "books")["a"]
	ctx := t.Context()
	if _, err := s.Store.ReadRange(ctx, "books", o, 20, 5); !errors.Is(err, blob.ErrRange) {
		t.Errorf("beyond the end: %v", err)
	}
	if _, err := s.Store.ReadRange(ctx, "books", o, 5, 50); !errors.Is(err, blob.ErrRange) {
		t.Errorf("past the end: %v", err)
	}
	if _, _, err := s.Store.Get(ctx, "books", "none"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("no object: %v", err)
	}
	if _, _, err := s.Store.Get(ctx, "none", "a"); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("no bucket: %v", err)
	}
	if err := os.WriteFile(path, []byte("9876543210"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.ReadRange(ctx, "books", o, 0, 5); !errors.Is(err, blob.ErrChanged) {
		t.Errorf("another version: %v", err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	if _, _, err := s.Config.Library().Get(ctx, "books", "a"); !errors.Is(err, blob.ErrDenied) {
		t.Errorf("a wrong secret: %v", err)
	}
	off := s.Config
	off.LibraryEndpoint = "http://127.0.0.1:1"
	if _, _, err := off.Library().Get(ctx, "books", "a"); !blob.Unreachable(err) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestPutGetDelete(t *testing.T) {
	s := testkit.StartS3(t)
	media, ctx := s.Config.Media(), t.Context()
	data := bytes.Repeat([]byte("x"), 100_000)
	if err := media.Put(ctx, "media", "t/cover/a b", "image/jpeg", data); err != nil {
		t.Fatal(err)
	}
	body, o, err := media.Get(ctx, "media", "t/cover/a b")
	if err != nil || o.Size != 100_000 || o.ETag == "" {
		t.Fatalf("%+v, %v", o, err)
	}
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	o.ETag = `"00000000000000000000000000000000"`
	o.Key = "t/cover/a b"
	if _, err := media.ReadRange(ctx, "media", o, 0, 10); !errors.Is(err, blob.ErrChanged) {
		t.Errorf("another ETag: %v", err)
	}
	for done, err := range media.DeletePages(ctx, "media", "t/", time.Now().Add(time.Hour)) {
		if err != nil || done.Objects != 1 {
			t.Errorf("deleted %+v, %v", done, err)
		}
	}
	if err := media.Delete(ctx, "media", "t/cover/a b"); err != nil {
		t.Errorf("deleting again: %v", err)
	}
}

// Objects that a store refuses to delete, because of a lock or a policy, are reported at the end and do not stop the
// rest.
func TestDeletePagesGoesOnBehindWhatIsRefused(t *testing.T) {
	t.Parallel()
	s := testkit.StartS3(t)
	media := s.Config.Media()
	for i := range 1001 { // more than one request deletes
		testkit.WriteFile(t, s.Dir, fmt.Sprintf("media/t/%04d", i), []byte("12345"))
	}
	testkit.WriteFile(t, s.Dir, "media/t/0000-locked", nil)
	testkit.WriteFile(t, s.Dir, "media/t/0001-locked", nil)
	s.Keep("locked")
	var sum blob.Deleted
	var last error
	for done, err := range media.DeletePages(t.Context(), "media", "t/", time.Time{}) {
		if last != nil {
			t.Errorf("%+v, %v after %v", done, err, last)
		}
		sum.Objects, sum.Bytes, last = sum.Objects+done.Objects, sum.Bytes+done.Bytes, err
	}
	var refused *blob.Undeleted
	if !errors.As(last, &refused) || !slices.Equal(refused.Keys, []string{"t/0000-locked", "t/0001-locked"}) || !strings.Contains(last.Error(), "the object is locked") {
		t.Errorf("%v", last)
	}
	if (sum != blob.Deleted{Objects: 1001, Bytes: 5005}) {
		t.Errorf("%+v", sum)
	}
	if left := listed(t, s, "media"); len(left) != 2 {
		t.Errorf("%d objects are left", len(left))
	}
}

func page(b *testing.B) (*testkit.S3, blob.Object) {
	s := testkit.StartS3(b, "books")
	testkit.WriteFile(b, s.Dir, "books/a", bytes.Repeat([]byte("0123456789"), 74_000))
	return s, listed(b, s, "books")["a"]
}

func BenchmarkRange(b *testing.B) {
	s, o := page(b)
	for b.Loop() {
		r, err := s.Store.Range(b.Context(), "books", o, 0, o.Size)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}

func BenchmarkRangeSDK(b *testing.B) {
	s, o := page(b)
	client := s3.New(s3.Options{Region: "us-east-1", UsePathStyle: true, BaseEndpoint: &s.Config.LibraryEndpoint, HTTPClient: &http.Client{Transport: &http.Transport{DisableCompression: true}},
		Credentials:                credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired})
	for b.Loop() {
		out, err := client.GetObject(b.Context(), &s3.GetObjectInput{Bucket: aws.String("books"), Key: aws.String("a"), Range: aws.String(fmt.Sprintf("bytes=0-%d", o.Size-1))})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, out.Body); err != nil {
			b.Fatal(err)
		}
		out.Body.Close()
	}
}
