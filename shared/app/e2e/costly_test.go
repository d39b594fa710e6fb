package e2e_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// A page of a solid archive is expensive: it is read by decompressing everything before it, until the page pack exists
// that the first reader's request started. After that it costs as much as any page.
func TestCostlyPages(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	pages := jpegs(t, 6, "1.jpg", "2.jpg", "3.jpg", "4.jpg")
	testkit.WriteFile(t, s.folder, "S/solid 1.cb7", testkit.SevenZip(t, files(true, pages...)...))
	if st := s.scan(admin, s.library(admin, "Books", "")); st.Status != "completed" || st.ErrorCount != 0 {
		t.Fatalf("scan: %+v", st)
	}
	b := s.books(reader)["S/solid 1.cb7"]
	if b.PageCount != len(pages) || b.FileFormat != "cb7" {
		t.Fatalf("%+v", b)
	}
	packs := func() (n int) {
		t.Helper()
		if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select count(*) from page_pack where book_id = $1", b.ID).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	read := func(n int) {
		t.Helper()
		a := s.fetch(t, reader, "GET", pageURL(b, n)).want(t, 200)
		if !bytes.Equal(a.Body, pages[n-1].data) || a.Header.Get("Content-Type") != "image/jpeg" {
			t.Errorf("page %d: %d bytes, %v", n, len(a.Body), a.Header)
		}
	}
	if n := packs(); n != 0 {
		t.Fatalf("%d packs before anybody reads", n)
	}
	s.s3.Counter.Reset()
	read(3) // from the book itself: a reader does not wait for the pack
	library, media := buckets(s.s3.Counter.Reset())
	if library == 0 || media != 0 {
		t.Errorf("the first page cost %d requests to the book and %d to the media", library, media)
	}
	stop := s.work()
	testkit.Eventually(t, time.Minute, func() bool { return packs() == 1 })
	stop()
	for _, n := range []int{3, 1, 4, 2} {
		var all []testkit.Request
		for range 3 { // a response that began before Redis confirmed it begins anew if Redis takes too long
			s.s3.Counter.Reset()
			read(n)
			if all = s.s3.Counter.Reset(); len(all) == 1 {
				break
			}
		}
		library, media := buckets(all)
		gets := testkit.Objects(all, "GET")
		if len(all) != 1 || len(gets) != 1 || library != 0 || media != 1 || gets[0].Range == "" || gets[0].Bytes != int64(len(pages[n-1].data)) {
			t.Errorf("page %d of %d bytes cost %v, want one range of the pack", n, len(pages[n-1].data), all)
		}
	}
	// Whatever has happened to the pack since, the pages can be read.
	var key string
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), "select key from page_pack where book_id = $1", b.ID).Scan(&key); err != nil {
		t.Fatal(err)
	}
	store := s.s3.Config.Media()
	if err := store.Put(t.Context(), "media", key, "application/zip", []byte("made anew")); err != nil {
		t.Fatal(err)
	}
	read(2)
	if err := store.Delete(t.Context(), "media", key); err != nil {
		t.Fatal(err)
	}
	read(4)
}
