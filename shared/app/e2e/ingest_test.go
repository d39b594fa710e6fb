package e2e_test

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// TestUploadIsIngest follows objects from the store to a reader's list. The store's own notifications reach the worker
// through a queue. `make conformance` runs it against every store that Longbox supports.
func TestUploadIsIngest(t *testing.T) {
	store := testkit.StartAnnouncer(t, "books-"+uuid.NewString()[:8])
	s := newSystem(t, links{store: store})
	admin, reader := s.as("admin"), s.as("reader")
	s.library(admin, "Books", "")
	stop := s.work()
	defer stop()
	const key = "Reihe #1/日本 (a+b) 100% é.cbz"
	pages := func(t *testing.T, want int) { // 0: the book does not exist
		t.Helper()
		began := time.Now()
		testkit.Eventually(t, time.Minute, func() bool {
			b, ok := s.books(reader)[key]
			return ok && b.Analyzed && b.PageCount == want || !ok && want == 0
		})
		t.Logf("measured: %.1f s", time.Since(began).Seconds())
	}
	put := func(t *testing.T, n int) {
		t.Helper()
		if _, err := store.SDK.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &store.Bucket, Key: aws.String(key),
			Body: bytes.NewReader(testkit.Comic(t, n, n, ""))}); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("a book appears", func(t *testing.T) { put(t, 3); pages(t, 3) })
	t.Run("changes", func(t *testing.T) { put(t, 5); pages(t, 5) })
	t.Run("is moved", func(t *testing.T) {
		source := store.Bucket + "/" + strings.ReplaceAll(url.QueryEscape(key), "+", "%20") // stores differ on what + means
		if _, err := store.SDK.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: &store.Bucket, Key: aws.String("Andere/1.cbz"), CopySource: &source}); err != nil {
			t.Fatal(err)
		}
		if _, err := store.SDK.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &store.Bucket, Key: aws.String(key)}); err != nil {
			t.Fatal(err)
		}
		pages(t, 0)
		testkit.Eventually(t, time.Minute, func() bool { return s.books(reader)["Andere/1.cbz"].PageCount == 5 })
	})
	t.Run("a hundred appear", func(t *testing.T) {
		began := time.Now()
		comic := testkit.Comic(t, 7, 1, "")
		for i := range 100 {
			if _, err := store.SDK.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &store.Bucket, Key: aws.String("Viele/" + strconv.Itoa(i) + ".cbz"),
				Body: bytes.NewReader(comic)}); err != nil {
				t.Fatal(err)
			}
		}
		sent := time.Since(began)
		testkit.Eventually(t, 2*time.Minute, func() bool { return len(s.books(reader)) == 101 })
		t.Logf("measured: %.1f s, of which %.1f s uploads", time.Since(began).Seconds(), sent.Seconds())
	})
}
