package e2e_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

// In Lambda the function compresses its large responses, because no CDN does. On one machine they are sent as they are.
func TestLargeAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	const path = "/api/v1/admin/settings"
	want := s.fetch(t, admin, "GET", path).want(t, 200)
	got := s.fetch(t, admin, "GET", path, "Accept-Encoding", "gzip, br").want(t, 200)
	if packed := got.Header.Get("Content-Encoding") == "gzip"; packed != (programs != "") {
		t.Fatalf("compressed: %t", packed)
	} else if packed {
		z, err := gzip.NewReader(bytes.NewReader(got.Body))
		if err != nil {
			t.Fatal(err)
		}
		if got.Body, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got.Body, want.Body) {
		t.Errorf("%d bytes, and as gzip %d others", len(want.Body), len(got.Body))
	}
}
