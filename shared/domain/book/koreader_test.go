package book_test

import (
	"fmt"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// A book shows KOReader's hash of its current file.
func TestKOReaderHash(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	me := s.User(t, "one", "reader")
	_, ids := series(t, s, s.One, library(t, s, s.One, "comics"), "A", 3)
	for i, id := range ids[:2] {
		exec(t, s, `insert into koreader_digest (tenant_id, book_id, digest, file_size, file_etag, file_modified)
			select tenant_id, id, 'd' || $2::integer, size + $2, etag, modified_at from book where id = $1`, id, i)
	}
	var page struct {
		Data []struct{ KoreaderHash *string }
	}
	me.Do("GET", "/api/v1/books?sort=number", nil).Want(200).JSON(&page)
	if len(page.Data) != 3 || page.Data[0].KoreaderHash == nil || *page.Data[0].KoreaderHash != "d0" || page.Data[1].KoreaderHash != nil || page.Data[2].KoreaderHash != nil {
		t.Errorf("listed: %+v", page.Data)
	}
	for _, path := range []string{"", "/full"} {
		if m := me.Do("GET", fmt.Sprintf("/api/v1/books/%s%s", ids[0], path), nil).Want(200).Map(); m["koreaderHash"] != "d0" {
			t.Errorf("%s: %v", path, m["koreaderHash"])
		}
	}
}
