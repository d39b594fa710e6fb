package e2e_test

import (
	"bytes"
	"image"
	_ "image/jpeg" // the formats that renditions come in
	_ "image/png"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// size returns the dimensions of a picture. For WebP it reads the header.
func size(t *testing.T, data []byte) (w, h int, format string) {
	t.Helper()
	if len(data) > 30 && string(data[8:12]) == "WEBP" && string(data[12:15]) == "VP8" {
		switch data[15] {
		case ' ': // RFC 9649 2.5
			return (int(data[26]) | int(data[27])<<8) & 0x3fff, (int(data[28]) | int(data[29])<<8) & 0x3fff, "webp"
		case 'X': // RFC 9649 2.7
			return 1 + (int(data[24]) | int(data[25])<<8 | int(data[26])<<16), 1 + (int(data[27]) | int(data[28])<<8 | int(data[29])<<16), "webp"
		}
		t.Fatalf("a WebP of kind %q", data[12:16])
	}
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return c.Width, c.Height, format
}

// buckets returns the number of requests to the library and to the media bucket.
func buckets(all []testkit.Request) (library, media int) {
	for _, r := range all {
		if strings.HasPrefix(r.Path, "/media/") {
			media++
		} else {
			library++
		}
	}
	return library, media
}

func TestRenditions(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/large 1.cbz", testkit.Zip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 900, 1200, 1)},
		testkit.File{Name: "2.jpg", Data: append([]byte("\xff\xd8\xff\xe0"), bytes.Repeat([]byte("no picture "), 50)...)},
		testkit.File{Name: "3.jpg", Data: testkit.JPEG(t, 100, 50, 2), Deflate: true}, testkit.File{Name: "4.jpg", Data: testkit.JPEG(t, 6000, 60, 3)}))
	s.scan(admin, s.library(admin, "Books", ""))
	b := s.books(admin)["S/large 1.cbz"]
	if b.PageCount != 4 {
		t.Fatalf("%+v", b)
	}
	for _, c := range []struct {
		page         int
		query        string
		width        int
		height       int
		format, kind string
	}{
		{1, "width=310", 300, 400, "jpeg", "image/jpeg"},
		{1, "height=300", 225, 300, "jpeg", "image/jpeg"},
		{1, "width=300&height=10000", 300, 400, "jpeg", "image/jpeg"},
		{1, "format=png&width=160", 150, 200, "png", "image/png"},
		{1, "format=webp&width=160", 150, 200, "webp", "image/webp"},
		{1, "format=jpg", 900, 1200, "jpeg", "image/jpeg"},
		{1, "width=5000", 900, 1200, "jpeg", "image/jpeg"},
		{3, "width=4000&format=png", 100, 50, "png", "image/png"},
		{4, "width=4096", 3000, 30, "jpeg", "image/jpeg"},
		{4, "width=50000&height=20001", 3000, 30, "jpeg", "image/jpeg"},
		{4, "format=webp", 6000, 60, "webp", "image/webp"},
	} {
		a := s.fetch(t, admin, "GET", pageURL(b, c.page)+"?"+c.query)
		if a.Status != 200 {
			t.Errorf("%s: status %d: %s", c.query, a.Status, a.Body)
			continue
		}
		w, h, format := size(t, a.Body)
		if w != c.width || h != c.height || format != c.format || a.Header.Get("Content-Type") != c.kind || a.Length != int64(len(a.Body)) {
			t.Errorf("%s: %d x %d %s as %s, want %d x %d", c.query, w, h, format, a.Header.Get("Content-Type"), c.width, c.height)
		}
		s.s3.Counter.Reset()
		again := s.fetch(t, admin, "GET", pageURL(b, c.page)+"?"+c.query, "If-None-Match", a.Header.Get("ETag"))
		if all := s.s3.Counter.Reset(); again.Status != 304 || len(again.Body) != 0 || len(all) != 0 {
			t.Errorf("%s: conditional %d after %v", c.query, again.Status, all)
		}
	}
	// Widths within one step of the ladder share a rendition.
	one := s.fetch(t, admin, "GET", pageURL(b, 1)+"?width=301").want(t, 200)
	other := s.fetch(t, admin, "GET", pageURL(b, 1)+"?width=310").want(t, 200)
	if one.Header.Get("ETag") != other.Header.Get("ETag") {
		t.Errorf("widths 301 and 310 are two renditions: %s, %s", one.Header.Get("ETag"), other.Header.Get("ETag"))
	}
	s.fetch(t, admin, "GET", pageURL(b, 2)+"?width=300").problem(t, 422)
	for _, bad := range []string{"width=0", "width=-3", "width=x", "height=2147483648", "format=gif", "width=1e3"} {
		s.fetch(t, admin, "GET", pageURL(b, 1)+"?"+bad).problem(t, 400)
	}
	s.fetch(t, admin, "GET", pageURL(b, 9)+"?width=300").problem(t, 404)
}

func TestRenditionIsKeptOnSecondMiss(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a.cbz", testkit.Comic(t, 1, 2, ""))
	s.scan(admin, s.library(admin, "Books", ""))
	url := pageURL(s.books(admin)["S/a.cbz"], 1) + "?width=40&format=webp"
	var bodies [][]byte
	for i, want := range [][2]int{{1, 1}, {1, 2}, {0, 1}, {0, 1}} { // requests to the library, to the media bucket
		s.s3.Counter.Reset()
		bodies = append(bodies, s.fetch(t, admin, "GET", url).want(t, 200).Body)
		all := s.s3.Counter.Reset()
		if library, media := buckets(all); library != want[0] || media != want[1] {
			t.Errorf("request %d: %v, want %v", i+1, all, want)
		}
		if !bytes.Equal(bodies[i], bodies[0]) {
			t.Errorf("request %d answers with another picture", i+1)
		}
	}
}

func TestThumbnails(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Zip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 900, 1200, 1)}))
	for _, broken := range []string{"A/first of the library.cbz", "S/a 0 first of its series.cbz", "T/broken.cbz"} {
		testkit.WriteFile(t, s.folder, broken, []byte("no archive"))
	}
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	books := s.books(admin)
	good, bad := books["S/a 1.cbz"], books["T/broken.cbz"]
	for _, path := range []string{"books/" + good.ID.String(), "series/" + good.SeriesID.String(), "libraries/" + library.String()} {
		s.s3.Counter.Reset()
		a := s.fetch(t, admin, "GET", "/api/v1/"+path+"/thumbnail").want(t, 200)
		if lib, media := buckets(s.s3.Counter.Reset()); lib != 0 || media != 1 {
			t.Errorf("%s: %d requests to the library, %d to the media bucket", path, lib, media)
		}
		if w, h, format := size(t, a.Body); w != 300 || h != 400 || format != "jpeg" || a.Header.Get("Content-Type") != "image/jpeg" {
			t.Errorf("%s: %d x %d %s", path, w, h, format)
		}
		for condition, value := range map[string]string{"If-None-Match": "ETag", "If-Modified-Since": "Last-Modified"} {
			if value == "Last-Modified" && strings.HasPrefix(path, "libraries/") {
				continue // it shows the picture of one of its series, another one of which may have the same date
			}
			again := s.fetch(t, admin, "GET", "/api/v1/"+path+"/thumbnail", condition, a.Header.Get(value))
			if all := s.s3.Counter.Reset(); again.Status != 304 || len(all) != 0 || again.Header.Get("ETag") != a.Header.Get("ETag") {
				t.Errorf("%s, %s: conditional %d after %v", path, condition, again.Status, all)
			}
			if got, want := again.Header.Get("Cache-Control"), a.Header.Get("Cache-Control"); got != want || strings.Contains(got, "immutable") {
				t.Errorf("%s, %s: the 304 says Cache-Control %q, the whole answer %q", path, condition, got, want)
			}
		}
		s.fetch(t, admin, "GET", "/api/v1/"+path+"/thumbnail", "If-None-Match", `"other"`, "If-Modified-Since", a.Header.Get("Last-Modified")).want(t, 200)
		s.fetch(t, admin, "GET", "/api/v1/"+path+"/thumbnail", "If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)).want(t, 200)
		s.s3.Counter.Reset()
	}
	for _, path := range []string{"books/" + bad.ID.String(), "series/" + bad.SeriesID.String()} {
		a := s.fetch(t, admin, "GET", "/api/v1/"+path+"/thumbnail").want(t, 200)
		if a.Header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "default-src 'none'") || !bytes.Contains(a.Body, []byte("<svg")) {
			t.Errorf("%s: no placeholder: %v", path, a.Header)
		}
		if head := s.fetch(t, admin, "HEAD", "/api/v1/"+path+"/thumbnail").want(t, 200); len(head.Body) != 0 || head.Header.Get("Content-Length") != strconv.Itoa(len(a.Body)) {
			t.Errorf("%s: HEAD %v", path, head.Header)
		}
	}
}

// A picture beside the books is the cover of their series until it is deleted. The scan renders it from the picture's
// own content. A file that is not a picture, or is too large, leaves the first book's cover in place.
func TestSeriesPicture(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "S/a 1.cbz", testkit.Zip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 900, 1200, 1)}))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	series := "/api/v1/series/" + s.books(admin)["S/a 1.cbz"].SeriesID.String()
	shown := func(source string, width, height int) (etag string) {
		t.Helper()
		s.s3.Counter.Reset()
		a := s.fetch(t, admin, "GET", series+"/thumbnail").want(t, 200)
		if lib, media := buckets(s.s3.Counter.Reset()); lib != 0 || media != 1 {
			t.Errorf("%s: %d requests to the library, %d to the media bucket", source, lib, media)
		}
		if w, h, format := size(t, a.Body); w != width || h != height || format != "jpeg" {
			t.Errorf("%s: %d x %d %s", source, w, h, format)
		}
		if got := admin.Do("GET", series, nil).Want(200).Map(); got["selectedCoverSource"] != source {
			t.Errorf("selectedCoverSource %v, want %s", got["selectedCoverSource"], source)
		}
		return a.Header.Get("ETag")
	}
	first := shown("first_book", 300, 400)
	s.exec("update series set updated_at = now() + interval '1 minute'") // later than the changes of its pictures
	date := s.fetch(t, admin, "GET", series+"/thumbnail").want(t, 200).Header.Get("Last-Modified")
	s.fetch(t, admin, "GET", series+"/thumbnail", "If-Modified-Since", date).want(t, 304)
	testkit.WriteFile(t, s.folder, "S/poster.jpg", testkit.JPEG(t, 800, 800, 2))
	s.scan(admin, library)
	s.fetch(t, admin, "GET", series+"/thumbnail", "If-Modified-Since", date).want(t, 200)
	poster := shown("file", 400, 400)
	testkit.WriteFile(t, s.folder, "S/Cover.JPG", testkit.JPEG(t, 400, 200, 3))
	s.scan(admin, library)
	cover := shown("file", 400, 200)
	testkit.WriteFile(t, s.folder, "S/Cover.JPG", []byte("\xff\xd8\xff no picture"))
	s.scan(admin, library)
	if again := shown("file", 400, 400); again != poster || first == poster || cover == poster {
		t.Errorf("tags %s, %s, %s, %s", first, poster, cover, again)
	}
	if warnings := admin.Do("GET", series, nil).Want(200).Map()["metadata"].(map[string]any)["warnings"].([]any); len(warnings) != 1 || !strings.Contains(warnings[0].(string), "Cover.JPG") {
		t.Errorf("warnings %v", warnings)
	}
	chosen := func(source string) {
		t.Helper()
		if got := admin.Do("PATCH", series+"/cover/source", object{"source": source}).Want(200).Map(); got["source"] != source {
			t.Errorf("%v", got)
		}
	}
	upload := admin.Do("POST", series+"/cover", testkit.Form{Member: "file", File: testkit.JPEG(t, 500, 1000, 4)}).Want(201).Map()
	// The first request renders the picture, without a request to a store for it, and stores the result.
	for range 2 {
		a := s.fetch(t, admin, "GET", series+"/thumbnail").want(t, 200)
		if w, h, _ := size(t, a.Body); w != 200 || h != 400 {
			t.Errorf("uploaded: %d x %d", w, h)
		}
	}
	uploaded := shown("custom", 200, 400)
	if got := s.fetch(t, admin, "GET", upload["path"].(string)).want(t, 200); !bytes.Equal(got.Body, testkit.JPEG(t, 500, 1000, 4)) {
		t.Errorf("%d bytes of the picture that was uploaded", len(got.Body))
	}
	chosen("first_book")
	if again := shown("first_book", 300, 400); again != first || again == uploaded {
		t.Errorf("tag %s, first %s", again, first)
	}
	book := "book:" + s.books(admin)["S/a 1.cbz"].ID.String()
	chosen(book)
	shown(book, 300, 400)
	admin.Do("DELETE", series+"/covers/selected", nil).Want(204)
	shown("file", 400, 400)
	for _, name := range []string{"Cover.JPG", "poster.jpg"} {
		if err := os.Remove(filepath.Join(s.folder, "S", name)); err != nil {
			t.Fatal(err)
		}
	}
	s.scan(admin, library)
	if again := shown("first_book", 300, 400); again != first {
		t.Errorf("tag %s, first %s", again, first)
	}
}

// A series does not show the picture of another library's folder of the same name.
func TestSeriesPictureOfAnotherLibrary(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "A/S/a 1.cbz", testkit.Comic(t, 1, 1, ""))
	testkit.WriteFile(t, s.folder, "A/S/cover.jpg", testkit.JPEG(t, 300, 300, 2))
	testkit.WriteFile(t, s.folder, "B/S/b 1.cbz", testkit.Zip(t, testkit.File{Name: "1.jpg", Data: testkit.JPEG(t, 900, 1200, 1)}))
	for _, name := range []string{"A", "B"} {
		s.scan(admin, s.library(admin, name, "/"+name))
	}
	books := s.books(admin)
	for key, want := range map[string][2]int{"A/S/a 1.cbz": {300, 300}, "B/S/b 1.cbz": {300, 400}} {
		a := s.fetch(t, admin, "GET", "/api/v1/series/"+books[key].SeriesID.String()+"/thumbnail").want(t, 200)
		if w, h, _ := size(t, a.Body); w != want[0] || h != want[1] {
			t.Errorf("%s: %d x %d", key, w, h)
		}
	}
}
