package e2e_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// ebook is a reflowable EPUB of n chapters.
func ebook(t *testing.T, n int) []byte {
	var items, spine strings.Builder
	files := []testkit.File{{Name: "mimetype", Data: []byte("application/epub+zip")}, {Name: "META-INF/container.xml", Data: []byte(
		`<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`)}}
	for i := range n {
		fmt.Fprintf(&items, `<item id="c%d" href="a%%20chapter%d.xhtml" media-type="application/xhtml+xml"/>`, i, i)
		fmt.Fprintf(&spine, `<itemref idref="c%d"/>`, i)
		files = append(files, testkit.File{Name: fmt.Sprintf("OPS/a chapter%d.xhtml", i), Data: []byte("<html xmlns='http://www.w3.org/1999/xhtml'><body>" + strings.Repeat("word ", 3000) + "</body></html>")})
	}
	files = append(files, testkit.File{Name: "OPS/book.opf", Data: []byte(`<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Saga</dc:title></metadata><manifest>` +
		items.String() + "</manifest><spine>" + spine.String() + "</spine></package>")})
	return testkit.Zip(t, files...)
}

// digestOf returns the digest by which KOReader identifies a file of less than 256 KiB.
func digestOf(file []byte) string {
	sum := md5.New()
	for _, offset := range []int{0, 1 << 10, 1 << 12, 1 << 14, 1 << 16} {
		if offset < len(file) {
			sum.Write(file[offset:min(offset+1<<10, len(file))])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// KOReader logs in with an API key, and shares the place in a comic and in an e-book with other readers.
func TestKOReader(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin, reader := s.as("admin"), s.as("reader")
	comic, novel, single := testkit.Comic(t, 1, 8, ""), ebook(t, 5), ebook(t, 1)
	broken := testkit.Zip(t, testkit.File{Name: "mimetype", Data: []byte("application/epub+zip")}, testkit.File{Name: "x.html", Data: []byte("x")})
	testkit.WriteFile(t, s.folder, "Saga/Saga 1.cbz", comic)
	testkit.WriteFile(t, s.folder, "Saga/Saga.epub", novel)
	testkit.WriteFile(t, s.folder, "Saga/Single.epub", single)
	testkit.WriteFile(t, s.folder, "Saga/Broken.epub", broken)
	testkit.WriteFile(t, s.folder, "Saga/Twin 1.cbz", testkit.Comic(t, 2, 2, ""))
	testkit.WriteFile(t, s.folder, "Other/Twin 1.cbz", testkit.Comic(t, 2, 2, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	books := s.books(admin)
	ko := s.Key(t, reader, "ProgressRead", "ProgressWrite")
	key := ko.Header.Get("X-Api-Key")
	ko.Header = http.Header{"X-Auth-User": {key}, "X-Auth-Key": {"0cc175b9c0f1b6a831c399e269772661"}, "Accept": {"application/vnd.koreader.v1+json"}}
	const at = "/koreader/syncs/progress"
	ko.Do("GET", "/koreader/users/auth", nil).Want(404) // off at first
	ko.Do("GET", at+"/"+digestOf(comic), nil).Want(404)
	admin.Do("PUT", "/api/v1/admin/settings/koreader_api.enabled", object{"value": "true"}).Want(200)

	if got := ko.Do("GET", "/koreader/users/auth", nil).Want(200).Map(); got["authorized"] != "OK" {
		t.Errorf("authorized: %v", got)
	}
	wrong := *ko
	wrong.Header = http.Header{"X-Auth-User": {key + "x"}}
	wrong.Do("GET", "/koreader/users/auth", nil).Want(401)
	s.Anonymous(t, "one").Do("GET", "/koreader/users/auth", nil).Want(401)
	ko.Do("GET", "/api/v1/books", nil).Want(401) // the header counts only for /koreader
	if got := s.Anonymous(t, "one").Do("POST", "/koreader/users/create", object{"username": "u", "password": "p"}).Want(403).Map(); !strings.Contains(fmt.Sprint(got["message"]), "API key") {
		t.Errorf("registered: %v", got)
	}
	few := s.Key(t, reader, "BooksRead")
	few.Do("GET", at+"/x", nil).Want(403)

	stop := s.work() // runs the task that logging in has added
	for _, file := range [][]byte{comic, novel, single, broken} {
		testkit.Eventually(t, time.Minute, func() bool { // known, but not yet read
			return strings.Contains(string(ko.Do("GET", at+"/"+digestOf(file), nil).Want(404).Body), "not read the book yet")
		})
	}
	stop()
	place := func(file []byte, progress any, percentage float64) object {
		return object{"document": digestOf(file), "progress": progress, "percentage": percentage, "device": "Kobo Libra", "device_id": "A1B2"}
	}
	is := func(file []byte, progress string, percentage float64) {
		t.Helper()
		got := ko.Do("GET", at+"/"+digestOf(file), nil).Want(200).Map()
		if got["document"] != digestOf(file) || got["progress"] != progress || got["percentage"] != percentage || got["device"] != "" || got["device_id"] != "" {
			t.Errorf("the place: %v, want %s at %v", got, progress, percentage)
		}
	}
	progressOf := func(path string) map[string]any {
		t.Helper()
		return reader.Do("GET", "/api/v1/books/"+books[path].ID.String()+"/progress", nil).Want(200).Map()
	}
	// A comic: pages, as number or text.
	if got := ko.Do("PUT", at, place(comic, 3, 0.375)).Want(200).Map(); got["document"] != digestOf(comic) || got["progress"] != 3.0 || got["device_id"] != "A1B2" {
		t.Errorf("stored: %v", got)
	}
	is(comic, "3", 0.375)
	if got := progressOf("Saga/Saga 1.cbz"); got["currentPage"] != 3.0 || got["completed"] != false {
		t.Errorf("as others see it: %v", got)
	}
	reader.Do("PUT", "/api/v1/books/"+books["Saga/Saga 1.cbz"].ID.String()+"/progress", object{"currentPage": 6}).Want(200)
	is(comic, "6", 0.75)
	ko.Do("PUT", at, place(comic, "8", 1)).Want(200)
	if got := progressOf("Saga/Saga 1.cbz"); got["completed"] != true {
		t.Errorf("read to the end: %v", got)
	}
	// An e-book: KOReader's own position, within the document that other readers know.
	const words = "/body/DocFragment[3]/body/p[12]/text().34"
	ko.Do("PUT", at, place(novel, words, 0.5)).Want(200)
	is(novel, words, 0.5)
	of := "/api/v1/books/" + books["Saga/Saga.epub"].ID.String() + "/progression"
	got := reader.Do("GET", of, nil).Want(200).Map()
	if l, _ := got["locator"].(map[string]any); l["href"] != "OPS/a%20chapter2.xhtml" || l["locations"].(map[string]any)["totalProgression"] != 0.5 ||
		fmt.Sprint(got["device"]) != "map[id:koreader:A1B2 name:Kobo Libra]" {
		t.Errorf("as others see it: %v", got)
	}
	// Relative to the package document, and from the root.
	for _, href := range []string{"a%20chapter3.xhtml", "/OPS/a%20chapter3.xhtml"} {
		reader.Do("PUT", of, object{"locator": object{"href": href, "type": "application/xhtml+xml", "locations": object{"totalProgression": 0.6}}}).Want(204)
		is(novel, "/body/DocFragment[4].0", 0.6)
	}
	reader.Do("PUT", of, object{"locator": object{"href": "OPS/a%20chapter3.xhtml#x", "type": "application/xhtml+xml", "locations": object{"totalProgression": 0.7}}}).Want(204)
	is(novel, "/body/DocFragment[4].0", 0.7)
	ko.Do("PUT", at, place(novel, "#_doc_fragment_1_ch", 0.3)).Want(200) // the form of older versions
	is(novel, "#_doc_fragment_1_ch", 0.3)
	reader.Do("PUT", "/api/v1/books/"+books["Saga/Saga.epub"].ID.String()+"/progress", object{"currentPage": 5, "progressPercentage": 0.9}).Want(200)
	is(novel, "/body/DocFragment[5].0", 0.9)
	// A page number of an e-book is KOReader's own count: only the percentage says how far the book was read.
	ko.Do("PUT", at, place(novel, "57", 0.25)).Want(200)
	is(novel, "/body/DocFragment[2].0", 0.25)
	if got := progressOf("Saga/Saga.epub"); got["completed"] != false || got["currentPage"] != 2.0 {
		t.Errorf("a page of KOReader's own: %v", got)
	}
	// For an e-book of one document KOReader leaves out the number; newer versions number everything. For a book whose
	// documents are unknown, Longbox keeps KOReader's position and gives other readers none.
	for file, words := range map[*[]byte]string{&single: "/body/DocFragment/body/p[7]/text()[1].0", &novel: "/body[1]/DocFragment[2]/body[1]/p[1]/text()[1].3", &broken: "/body/DocFragment[9]/body/p.0"} {
		ko.Do("PUT", at, place(*file, words, 0.4)).Want(200)
		is(*file, words, 0.4)
	}
	for path, href := range map[string]string{"Saga/Single.epub": "OPS/a%20chapter0.xhtml", "Saga/Saga.epub": "OPS/a%20chapter1.xhtml"} {
		got := reader.Do("GET", "/api/v1/books/"+books[path].ID.String()+"/progression", nil).Want(200).Map()
		if l, _ := got["locator"].(map[string]any); l["href"] != href {
			t.Errorf("%s as others see it: %v", path, got)
		}
	}
	reader.Do("GET", "/api/v1/books/"+books["Saga/Broken.epub"].ID.String()+"/progression", nil).Want(204)
	// Two books with the same file, and a file that nobody has: KOReader's later requests would wait behind a refused one.
	ko.Do("PUT", at, place(testkit.Comic(t, 2, 2, ""), 1, 0.5)).Want(200)
	ko.Do("GET", at+"/"+digestOf(testkit.Comic(t, 2, 2, "")), nil).Want(409)
	ko.Do("PUT", at, place([]byte("another"), 1, 0.5)).Want(200)
	ko.Do("GET", at+"/"+digestOf([]byte("another")), nil).Want(404)
	for field, bad := range map[string]object{"percentage": place(comic, 1, 1.5), "progress": place(comic, object{}, 0.5), "document": {"progress": 1, "percentage": 0.5}} {
		m := ko.Do("PUT", at, bad).Want(400).Map()
		if d, _ := m["details"].([]any); len(d) == 0 || d[0].(map[string]any)["field"] != field {
			t.Errorf("%s: %v", field, m)
		}
	}
	ko.Do("PUT", at, place(comic, 1.5, 0.5)).Want(400)
	ko.Do("PUT", at, place(comic, "", 0.5)).Want(400)
	// A hidden book is unknown.
	s.exec(`with t as (insert into sharing_tag (tenant_id, id, name) values ($1, gen_random_uuid(), 'some') returning *)
		insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) select tenant_id, gen_random_uuid(), id, $2, 'allow' from t`, s.One, reader.ID)
	ko.Do("GET", at+"/"+digestOf(comic), nil).Want(404)
	ko.Do("PUT", at, place(comic, 2, 0.25)).Want(200)
	s.exec("delete from sharing_grant where account_id = $1", reader.ID)
	is(comic, "8", 1)
}
