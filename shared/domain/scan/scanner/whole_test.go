package scanner_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// Progress beyond the last page of a truncated file is restored when the file is complete again, however late, unless
// the reader has turned to another page since, or started over.
func TestPlaceIsBackWithTheWholeFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	whole, half := testkit.Comic(t, 1, 6, ""), testkit.Comic(t, 1, 2, "")
	scanned := func(data []byte) {
		t.Helper()
		r.wrote("S/1.cbz", data, len(data))
		r.scan("normal")
		r.scan("normal")
	}
	told := func(user string, pass, page, minute int) {
		t.Helper()
		r.exec("delete from progress where account_id = $1", uuid.NewSHA1(uuid.Nil, []byte(user)))
		r.read(user, "S/1.cbz", page)
		r.exec(`insert into reading_session (tenant_id, account_id, id, book_id, pass, kind, device_id, started_at, ended_at, page)
			select tenant_id, $1, gen_random_uuid(), id, $2, 'progress', 'd', $3, $3, $4 from book`,
			uuid.NewSHA1(uuid.Nil, []byte(user)), pass, time.Date(2026, 5, 1, 12, minute, 0, 0, time.UTC), page)
	}
	at := func(want ...string) {
		t.Helper()
		same(t, "readers", values[string](r, `select a.username || ' ' || p.current_page from progress p join account a on a.tenant_id = p.tenant_id and a.id = p.account_id
			where p.tenant_id = app.tenant()`), want)
	}
	scanned(whole)
	for _, user := range []string{"ann", "bob", "cid", "dan"} {
		told(user, 1, 5, 1)
	}
	r.read("eve", "S/1.cbz", 5) // without a known position
	scanned(half)
	at("ann 2", "bob 2", "cid 2", "dan 2", "eve 2")
	told("bob", 1, 1, 2)
	told("cid", 2, 1, 0) // by a clock that is behind
	scanned(testkit.Comic(t, 1, 4, ""))
	at("ann 4", "bob 1", "cid 1", "dan 4", "eve 2")
	told("dan", 1, 4, 2)
	scanned(whole)
	at("ann 5", "bob 1", "cid 1", "dan 4", "eve 2")
}

// A reflowable EPUB has no pages: its reader's own count of positions stays when the file is replaced.
func TestPlaceInATextStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := 1; n <= 2; n++ {
		data := prose(t, n)
		r.wrote("S/1.epub", data, len(data))
		r.scan("normal")
		r.scan("normal")
		if n == 1 {
			r.read("ann", "S/1.epub", 240)
		}
	}
	same(t, "format, documents, place", values[string](r, `select b.format || ' ' || b.page_count || ' ' || b.revision || ' ' || p.current_page
		from book b join progress p on p.book_id = b.id where b.tenant_id = app.tenant()`), []string{"epub 1 1 240"})
}

// prose returns an EPUB of one reflowable document.
func prose(t *testing.T, n int) []byte {
	return testkit.Zip(t, testkit.File{Name: "mimetype", Data: []byte("application/epub+zip")},
		testkit.File{Name: "META-INF/container.xml", Data: []byte(`<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
			<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`)},
		testkit.File{Name: "book.opf", Data: []byte(`<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/>
			<manifest><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>`)},
		testkit.File{Name: "a.xhtml", Data: fmt.Appendf(nil, `<html xmlns="http://www.w3.org/1999/xhtml"><body><p>%s</p></body></html>`, strings.Repeat("Text. ", n))})
}
