package upload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/fault"
)

func TestPathsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "/a.cbz", "../a.cbz", "a/../b.cbz", "a/..", "..", ".", "a//b.cbz", "a/", "./a.cbz", `a\b.cbz`, "a\x00.cbz", "a\n.cbz", "a\u0085.cbz",
		"C:/a.cbz", "c:a.cbz", "a\xff.cbz", "a\ufffd.cbz", ".hidden.cbz", "a/.b/c.cbz", "__MACOSX/a.cbz", "a/__MACOSX/b.cbz", " a.cbz", "a /b.cbz", "a/b.cbz ",
		strings.Repeat("n", 252) + ".cbz", strings.Repeat("folder/", 128) + "abcde"} {
		if checkPath(p) == "" {
			t.Errorf("%q is accepted", p)
		}
	}
	for _, p := range []string{"a.cbz", "Series/Vol 1/a + b #1 (2012) 100%.cbz", "日本/語.epub", "a..b.cbz", "…/a.cbz", "ab:c.cbz", "A 1: The End/x.cbz",
		strings.Repeat("n", 251) + ".cbz", strings.Repeat("folder/", 128) + "abcd"} {
		if reason := checkPath(p); reason != "" {
			t.Errorf("%q %s", p, reason)
		}
	}
}

func TestFilesOfALibrary(t *testing.T) {
	t.Parallel()
	c := Config{MaxBytes: 100 << 20, SingleBytes: 10}
	all, err := library.Selection(nil, "skip\n*.old.cbz")
	if err != nil {
		t.Fatal(err)
	}
	epub, err := library.Selection([]string{"EPUB"}, "")
	if err != nil {
		t.Fatal(err)
	}
	beside, err := library.Sidecars("skip\n*.old.cbz", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file     File
		selected func(string) (string, bool)
		member   string // the invalid field
		want     string // media type
	}{
		{File{"a/b.cbz", 1, ""}, all, "", "application/vnd.comicbook+zip"},
		{File{"a/b.zip", 1, "application/zip"}, all, "", "application/zip"},
		{File{"a/b.CBZ", 1, "application/octet-stream"}, all, "", "application/octet-stream"},
		{File{"a/b.epub", 100 << 20, ""}, epub, "", "application/epub+zip"},
		{File{"a/Cover.JPG", 1, ""}, epub, "", "image/jpeg"},
		{File{"a/ComicInfo.xml", 20 << 20, "text/xml"}, all, "", "text/xml"},
		{File{"a/ComicInfo.xml", 20<<20 + 1, ""}, all, "size", ""},
		{File{"a/series.json", 1, ""}, epub, "", "application/json"},
		{File{"a/metadata.opf", 1, ""}, all, "", "application/oebps-package+xml"},
		{File{"b.opf", 1, "text/xml"}, all, "", "text/xml"},
		{File{"a/poster.png", 1, ""}, all, "", "image/png"},
		{File{"a/folder.jpeg", 1, "image/jpeg"}, all, "", "image/jpeg"},
		{File{"a/series.json", 20<<20 + 1, ""}, all, "size", ""},
		{File{"a/series.json", 1, "text/html"}, all, "contentType", ""},
		{File{"a/poster.png", 1, "image/jpeg"}, all, "contentType", ""},
		{File{"skip/cover.jpg", 1, ""}, all, "path", ""},
		{File{"skip/series.json", 1, ""}, all, "path", ""},
		{File{"cover.jpg", 1, ""}, all, "path", ""},
		{File{"a/other.json", 1, ""}, all, "path", ""},
		{File{"a/b.cbz", 0, ""}, all, "size", ""},
		{File{"a/b.cbz", -5, ""}, all, "size", ""},
		{File{"a/b.cbz", 100<<20 + 1, ""}, all, "size", ""},
		{File{"a/b.cbz", 1, "text/html"}, all, "contentType", ""},
		{File{"a/b.cbz", 1, "application/zip; charset=x"}, all, "contentType", ""},
		{File{"a/b.cbz", 1, "application/zip\r\nX: y"}, all, "contentType", ""},
		{File{"a/b.cbz", 1, ""}, epub, "path", ""},
		{File{"skip/b.cbz", 1, ""}, all, "path", ""},
		{File{"a/b.old.cbz", 1, ""}, all, "path", ""},
		{File{"a/b.html", 1, ""}, all, "path", ""},
		{File{"a/b.exe", 1, ""}, all, "path", ""},
		{File{"a/picture.jpg", 1, ""}, all, "path", ""},
		{File{"a/b", 1, ""}, all, "path", ""},
	} {
		got, member, reason := x.file.check(c, "prefix/", x.selected, beside)
		if member != x.member || (member == "") != (reason == "") || got.mediaType != x.want {
			t.Errorf("%+v: %+v, %s %s", x.file, got, member, reason)
		}
	}
	for path, want := range map[string]string{"a/b.exe": "is not a supported book", "a/b.cbz.exe": "is not a supported book", "skip/b.cbz": "is excluded by", "skip/series.json": "is excluded by"} {
		if _, _, reason := (File{path, 1, ""}).check(c, "prefix/", all, beside); !strings.Contains(reason, want) {
			t.Errorf("%s %s", path, reason)
		}
	}
	for size, want := range map[int]string{maxKey: "", maxKey + 1: "path"} {
		if _, member, _ := (File{"b.cbz", 1, ""}).check(c, strings.Repeat("p", size-len("b.cbz")), all, beside); member != want {
			t.Errorf("a key of %d bytes: %q", size, member)
		}
	}
}

func TestPartsThatHaveArrived(t *testing.T) {
	t.Parallel()
	r := row{Size: 2*minPart + 5, PartSize: minPart}
	have := r.arrived([]blob.Part{{Number: 0, Size: minPart}, {Number: 1, Size: minPart}, {Number: 2, Size: minPart - 1}, {Number: 3, Size: 5}, {Number: 4, Size: 5}})
	if got := slices.Sorted(maps.Keys(have)); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("%v", got)
	}
}

func TestPartsCoverTheFile(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, minPart - 1, minPart, minPart + 1, 200 * minPart, 200*minPart + 1, 5 << 30, maxObject} {
		r := row{Size: size, PartSize: partSize(size)}
		var sum int64
		n := 1
		for ; ; n++ {
			offset, part, ok := r.part(n)
			if !ok {
				break
			}
			if offset != sum || part < 1 || part > r.PartSize {
				t.Fatalf("%d bytes: part %d is %d from %d", size, n, part, offset)
			}
			sum += part
		}
		if sum != size || n-1 > 200 || r.PartSize > 5<<30 {
			t.Errorf("%d bytes in %d parts of %d: %d", size, n-1, r.PartSize, sum)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{"a/b.cbz", "../x", `a\b`, "C:/x.cbz", "a//b", ".x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if checkPath(p) != "" {
			return
		}
		if strings.HasPrefix(p, "/") || strings.ContainsAny(p, "\\\x00") || slices.Contains(strings.Split(p, "/"), "..") || len(p) > maxPath {
			t.Errorf("%q is accepted", p)
		}
	})
}

// Missing fields of an address are null, not omitted.
func TestAddressHasAllMembers(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Address{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"url", "uploadId", "partSize", "parts"} {
		if !strings.Contains(string(text), `"`+name+`":null`) {
			t.Errorf("%s is not null in %s", name, text)
		}
	}
}

func TestHowMuchAtOnce(t *testing.T) {
	t.Parallel()
	const whole = 64 << 20
	u := &Uploader{Config: Config{MaxBytes: maxObject, SingleBytes: whole}}
	some := func(n int, size int64) (all []File) {
		for range n {
			all = append(all, File{Path: fmt.Sprintf("%d-%d.cbz", size, len(all)), Size: size})
		}
		return all
	}
	const accepted = fault.Code(-1)
	const parted, largest = whole + 1, maxParts / 5 * minPart // in 5 parts, and in 200
	for _, c := range []struct {
		name  string
		open  int64
		files []File
		want  fault.Code
	}{
		{"as many in parts as may be", 0, some(maxBegun, parted), accepted},
		{"one more", 0, some(maxBegun+1, parted), fault.BadRequest},
		{"as many whole as may be", 0, some(maxParts, whole), accepted},
		{"one more", 0, some(maxParts+1, whole), fault.BadRequest},
		{"as many parts as may be", 0, some(5, largest), accepted},
		{"and a whole one", 0, append(some(5, largest), some(1, 1)...), fault.BadRequest},
		{"the last that may be open", maxOpen - 1, some(1, parted), accepted},
		{"one more", maxOpen, some(1, parted), fault.Conflict},
		{"a whole one with that", maxOpen, some(1, whole), accepted},
	} {
		got := accepted
		if _, err := u.checkAll(&place{Open: c.open}, c.files); err != nil {
			got = fault.From(err).Code
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A tenant above a lowered quota may still replace books and upload files beside them.
func TestRoomForWhatIsNoFurtherBook(t *testing.T) {
	t.Parallel()
	most := int64(5)
	for _, c := range []struct {
		books int64
		file  checked
		fits  bool
	}{
		{4, checked{path: "new.cbz", book: true}, true}, {5, checked{path: "new.cbz", book: true}, false},
		{7, checked{path: "known.cbz", book: true}, true}, {7, checked{path: "series.json"}, true},
	} {
		err := (&place{MaxBooks: &most, Books: c.books}).room([]checked{c.file}, []string{"known.cbz"}, true)
		if (err == nil) != c.fits {
			t.Errorf("%s beside %d books: %v", c.file.path, c.books, err)
		}
	}
}
