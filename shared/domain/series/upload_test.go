package series_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

// square returns a PNG of one colour.
func square(t *testing.T, side int, shade uint8) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, side, side))
	for i := range img.Pix {
		img.Pix[i] = color.Gray{Y: shade}.Y
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func file(data []byte) testkit.Form { return testkit.Form{Member: "file", File: data} }

func TestPeopleUploadCovers(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	told := 0
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		routes(a, d)
		publish := func(_ context.Context, _ uuid.UUID, e ...events.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, one := range e {
				if one.Kind == "cover_updated" {
					told++
				}
			}
		}
		cover.Routes(a, d, publish, nil)
		series.Routes(a, d, publish, nil)
	})
	me, reader, stranger := s.User(t, "one", "maintainer"), s.User(t, "one", "reader"), s.User(t, "two", "admin")
	library := newLibrary(t, s, s.One, "comics")
	id, books := newSeries(t, s, s.One, library, "A", 1, 1)
	other, _ := newSeries(t, s, s.One, library, "B", 2, 1)
	one := "/api/v1/series/" + id.String()
	shows := func(custom bool, source string) {
		t.Helper()
		m := reader.Do("GET", one, nil).Want(200).Map()
		if m["hasCustomCover"] != custom || m["selectedCoverSource"] != source {
			t.Errorf("shows %v %v, want %v %s", m["hasCustomCover"], m["selectedCoverSource"], custom, source)
		}
	}
	shows(false, "first_book")
	white := me.Do("POST", one+"/cover", file(square(t, 8, 255))).Want(201).Map()
	if white["seriesId"] != id.String() || white["isSelected"] != true || white["source"] != "custom" || white["width"] != 8.0 || white["height"] != 8.0 ||
		white["path"] != one+"/covers/"+white["id"].(string)+"/image" {
		t.Errorf("uploaded: %v", white)
	}
	shows(true, "custom")
	black := me.Do("POST", one+"/cover", file(square(t, 9, 0))).Want(201).Map()
	list := func() (out string) {
		t.Helper()
		page := reader.Do("GET", one+"/covers", nil).Want(200).Map()
		for _, v := range page["data"].([]any) {
			c := v.(map[string]any)
			name := map[any]string{white["id"]: "white", black["id"]: "black"}[c["id"]]
			out += fmt.Sprint(name, " ", c["isSelected"], ", ")
		}
		return out + fmt.Sprint("of ", page["total"])
	}
	is := func(want string) {
		t.Helper()
		if got := list(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	is("black true, white false, of 2")
	if again := me.Do("POST", one+"/cover", file(square(t, 8, 255))).Want(201).Map(); again["id"] != white["id"] {
		t.Errorf("the same picture is another: %v", again)
	}
	is("white true, black false, of 2") // the last uploaded one is first
	me.Do("PATCH", one+"/cover/source", `{"source":"first_book"}`).Want(200)
	me.Do("PATCH", one+"/cover/source", `{"source":"custom"}`).Want(200)
	is("white true, black false, of 2")
	me.Do("PUT", one+"/covers/"+black["id"].(string)+"/select", nil).Want(200)
	is("white false, black true, of 2")
	me.Do("PATCH", one+"/cover/source", `{"source":"first_book"}`).Want(200)
	shows(true, "first_book")
	me.Do("PATCH", one+"/cover/source", `{"source":"book:`+books[0].String()+`"}`).Want(200)
	me.Do("PUT", one+"/covers/"+black["id"].(string)+"/select", nil).Want(200)

	res := reader.Do("GET", black["path"].(string), nil).Want(200)
	if !bytes.Equal(res.Body, square(t, 9, 0)) || res.Header.Get("Content-Type") != "image/png" {
		t.Errorf("%d bytes of %s", len(res.Body), res.Header.Get("Content-Type"))
	}
	reader.Header.Set("If-None-Match", res.Header.Get("ETag"))
	reader.Do("GET", black["path"].(string), nil).Want(304)
	reader.Header.Del("If-None-Match")

	before := told
	me.Do("DELETE", one+"/covers/"+black["id"].(string), nil).Want(204)
	is("white true, of 1")
	me.Do("DELETE", one+"/covers/"+black["id"].(string), nil).Want(404)
	me.Do("DELETE", one+"/covers/"+white["id"].(string), nil).Want(204)
	shows(false, "first_book")
	if told != before+2 {
		t.Errorf("two were deleted, %d told", told-before)
	}
	me.Do("PATCH", one+"/cover/source", `{"source":"custom"}`).Want(400)

	white = me.Do("POST", one+"/cover", file(square(t, 8, 255))).Want(201).Map()
	at := one + "/covers/" + white["id"].(string)
	elsewhere := "/api/v1/series/" + other.String() + "/covers/" + white["id"].(string)
	for _, c := range []struct {
		method, path string
		body         any
	}{{"POST", one + "/cover", file(square(t, 8, 255))}, {"PUT", at + "/select", nil}, {"DELETE", at, nil}, {"GET", at + "/image", nil}, {"GET", one + "/covers", nil}} {
		stranger.Do(c.method, c.path, c.body).Want(404)
		s.Anonymous(t, "one").Do(c.method, c.path, c.body).Want(401)
		if c.method != "GET" {
			reader.Do(c.method, c.path, c.body).Want(403)
		}
		if strings.HasPrefix(c.path, at) {
			me.Do(c.method, strings.Replace(c.path, at, elsewhere, 1), c.body).Want(404)
		}
	}
	for name, body := range map[string]any{"no form": `{"file":"x"}`, "another member": testkit.Form{Member: "cover", File: square(t, 8, 1)}, "no picture": file([]byte("%PDF-1.7")),
		"an SVG": file([]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)), "nothing": file(nil),
		"the beginning of a GIF": file([]byte("GIF89a"))} {
		if m := me.Do("POST", one+"/cover", body).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "file" {
			t.Errorf("%s: %v", name, m)
		}
	}
	if r := me.Do("POST", one+"/cover", file(append(square(t, 8, 1), make([]byte, 2<<20)...))); r.Status != 400 && r.Status != 413 {
		t.Errorf("too large: %d", r.Status)
	}
	for i := range 19 {
		me.Do("POST", one+"/cover", file(square(t, 8, uint8(i)))).Want(201)
	}
	me.Do("POST", one+"/cover", file(square(t, 8, 100))).Want(409)
	me.Do("POST", one+"/cover", file(square(t, 8, 3))).Want(201) // exists already
	exec(t, s, "update series_cover set size = $1 where series_id = $2", 1<<30, id)
	another := "/api/v1/series/" + other.String() + "/cover"
	me.Do("POST", another, file(square(t, 8, 1))).Want(409)
	exec(t, s, "update series_cover set size = 1")
	me.Do("POST", another, file(square(t, 8, 1))).Want(201)
	me.Do("DELETE", one+"/metadata", nil).Want(200)
	shows(false, "first_book")
}

// A plugin's cover replaces the plugin's previous one, if there is room; people's choices stay.
func TestPluginsNameCovers(t *testing.T) {
	t.Parallel()
	var database *db.DB
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		database = d
		publish := func(context.Context, uuid.UUID, ...events.Event) {}
		cover.Routes(a, d, publish, nil)
		series.Routes(a, d, publish, nil)
	})
	me := s.User(t, "one", "maintainer")
	id, _ := newSeries(t, s, s.One, newLibrary(t, s, s.One, "comics"), "A", 1, 1)
	covers := func() string {
		var out []string
		for _, c := range me.Do("GET", "/api/v1/series/"+id.String()+"/covers", nil).Want(200).Map()["data"].([]any) {
			c := c.(map[string]any)
			out = append(out, fmt.Sprint(c["source"], " ", c["width"], " ", c["isSelected"]))
		}
		return strings.Join(out, ", ")
	}
	name := func(side int, show bool) int64 {
		var given cover.Given
		t.Helper()
		var b pgx.Batch
		cover.QueueGivenSeries(&b, &given, id, square(t, side, 1), "plugin:test", show)
		if err := database.Run(s.In(s.One), &b); err != nil {
			t.Fatal(err)
		}
		return given.Kept
	}
	for _, c := range []struct {
		side int
		show bool
		want string
	}{{8, true, "plugin:test 8 true"}, {9, true, "plugin:test 9 true"}, {9, true, "plugin:test 9 true"}, {10, false, "plugin:test 10 false, plugin:test 9 true"}} {
		if kept := name(c.side, c.show); kept != 1 || covers() != c.want {
			t.Errorf("%d %v: %d, %s", c.side, c.show, kept, covers())
		}
	}
	one := "/api/v1/series/" + id.String()
	shows := func(custom bool, source string) {
		t.Helper()
		m := me.Do("GET", one, nil).Want(200).Map()
		if m["hasCustomCover"] != custom || m["selectedCoverSource"] != source {
			t.Errorf("shows %v %v, want %v %s", m["hasCustomCover"], m["selectedCoverSource"], custom, source)
		}
	}
	shows(false, "plugin:test")
	me.Do("PATCH", one+"/cover/source", `{"source":"custom"}`).Want(400)
	me.Do("PATCH", one+"/cover/source", `{"source":"plugin:other"}`).Want(400)
	me.Do("PATCH", one+"/cover/source", `{"source":"default"}`).Want(200)
	shows(false, "first_book")
	me.Do("PATCH", one+"/cover/source", `{"source":"plugin:test"}`).Want(200)
	shows(false, "plugin:test")
	me.Do("POST", one+"/cover", file(square(t, 20, 1))).Want(201)
	shows(true, "custom")
	me.Do("PATCH", one+"/cover/source", `{"source":"plugin:test"}`).Want(200)
	if name(10, false); covers() != "plugin:test 10 true, custom 20 false" {
		t.Error(covers())
	}
	me.Do("PATCH", one+"/cover/source", `{"source":"custom"}`).Want(200) // not the one that came last
	shows(true, "custom")
	if name(11, false); covers() != "custom 20 true, plugin:test 11 false" && covers() != "plugin:test 11 false, custom 20 true" {
		t.Error(covers())
	}
	s.DB.Exec(t, "update series_cover set size = 600000000 where source = 'custom'")
	if kept := name(12, true); kept != 0 || !strings.Contains(covers(), "plugin:test 11") || strings.Contains(covers(), "12") {
		t.Errorf("without room: %d, %s", kept, covers())
	}
}
