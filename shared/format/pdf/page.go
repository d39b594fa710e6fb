package pdf

import (
	"bytes"
	"encoding/binary"
	"math"
)

const (
	// contentBytes limits the content stream of a page that may be one image: a few operators, and the invisible text
	// of a scan.
	contentBytes = 256 << 10
	// slack is the allowed distance of an image from the page's edges, relative to the page's side.
	slack = 0.03
	// headOfJPEG is the size of a JPEG's head with the orientation, in the first directory of its first segments. It is
	// small enough to be read together with the object before it.
	headOfJPEG = 512
)

// page checks whether a page is one JPEG image. A page with anything unusual must be drawn.
func (d *reader) page(p leaf) Page {
	if d.key != nil && d.key.streams != plainText {
		return Page{}
	}
	if n, _ := number(d.value(p.rotate)); math.Mod(n, 360) != 0 {
		return Page{}
	}
	box, ok := d.box(p.mediaBox)
	if !ok {
		return Page{}
	}
	if crop, ok := d.box(p.cropBox); ok {
		box = box.within(crop)
	}
	content, ok := d.contents(p.contents)
	if !ok {
		return Page{}
	}
	shown, ok := onlyImage(content, box, func(state name) bool {
		resources, _ := d.value(p.resources).(dict)
		states, _ := d.value(resources["ExtGState"]).(dict)
		return d.plainState(states[state])
	})
	if !ok {
		return Page{}
	}
	resources, _ := d.value(p.resources).(dict)
	objects, _ := d.value(resources["XObject"]).(dict)
	image, ok := d.value(objects[shown]).(stream)
	if !ok {
		return Page{}
	}
	out := d.jpeg(image)
	if !out.proportional(box) || d.annotated(p.annotations) {
		return Page{}
	}
	return out
}

// plainState reports whether a graphics state (8.4.5) leaves an image unchanged: opaque, not blended, in its own
// colours. Cairo, Acrobat and InDesign set one before every image.
func (d *reader) plainState(v any) bool {
	state, ok := d.value(v).(dict)
	for key, v := range state {
		v = d.value(v)
		switch key {
		case "CA", "ca":
			n, _ := number(v)
			ok = ok && n == 1
		case "BM":
			ok = ok && (v == name("Normal") || v == name("Compatible"))
		case "SMask":
			ok = ok && v == name("None")
		case "Type", "AIS", "SA", "SM", "TK", "RI", "FL", "OP", "op", "OPM", // alpha, overprinting, precision
			"LW", "LC", "LJ", "ML", "D", "Font": // lines and text
		default:
			ok = ok && v == name("Default")
		}
	}
	return ok
}

// annotated reports whether a page has a visible annotation (12.5.2): a stamp, a filled form, a mark. Links and pop-up
// notes are not visible.
func (d *reader) annotated(v any) bool {
	list, _ := d.value(v).(array)
	const most = 64 // annotations that are checked
	for _, v := range list[:min(len(list), most)] {
		a, ok := d.value(v).(dict)
		flags, _ := integer(d.value(a["F"]))
		_, large := d.box(a["Rect"])
		kind := d.value(a["Subtype"])
		const hidden, noView = 1 << 1, 1 << 5
		if ok && large && flags&(hidden|noView) == 0 && kind != name("Link") && kind != name("Popup") {
			return true
		}
	}
	return len(list) > most
}

// proportional reports whether the pixels are about square on the page. Those of a fax or of a stretched image are not,
// and the file alone would look distorted. Each edge may be off by slack.
func (p Page) proportional(box rectangle) bool {
	wide := float64(p.Width) * (box.y1 - box.y0)
	high := float64(p.Height) * (box.x1 - box.x0)
	return math.Abs(wide-high) <= 4*slack*max(wide, high)
}

// jpeg returns the location of an image that is a JPEG file, if a browser shows it the same way.
func (d *reader) jpeg(s stream) Page {
	filters, params := s.filters(d.value)
	if s.dict["Subtype"] != name("Image") || len(filters) != 1 || filters[0] != "DCTDecode" && filters[0] != "DCT" || len(params[0]) > 0 {
		return Page{}
	}
	for _, k := range []name{"SMask", "Mask", "ImageMask", "Decode", "SMaskInData", "Alternates", "OC"} {
		if v := d.value(s.dict[k]); v != nil && v != false {
			return Page{}
		}
	}
	if !d.plainColours(s.dict["ColorSpace"]) {
		return Page{}
	}
	length, ok := integer(d.value(s.dict["Length"]))
	if !ok || length < 4 || length > d.size-s.offset {
		return Page{}
	}
	head := make([]byte, min(length, headOfJPEG))
	if d.readAt(head, s.offset) != nil || !bytes.HasPrefix(head, []byte("\xff\xd8\xff")) || turned(head) {
		return Page{}
	}
	if !d.ends(s.offset + length) {
		return Page{}
	}
	w, _ := integer(d.value(s.dict["Width"]))
	h, _ := integer(d.value(s.dict["Height"]))
	const maxSide = 1 << 20
	if w < 1 || h < 1 || w > maxSide || h > maxSide {
		return Page{}
	}
	return Page{JPEG: true, Offset: s.offset, Length: length, Width: int(w), Height: int(h)}
}

// ends reports whether a stream ends near there: viewers find the end themselves if the length is wrong.
func (d *reader) ends(at int64) bool {
	const before, around = 16, 40
	from := max(at-before, 0)
	b := make([]byte, min(around, d.size-from))
	return d.readAt(b, from) == nil && (bytes.Contains(b, []byte("endstream")) || bytes.Contains(b, []byte("endobj")))
}

// turned reports whether a JPEG file has an orientation (Exif 4.6.4, tag Orientation): a document ignores it, a browser
// applies it.
func turned(file []byte) bool {
	for b := file[2:]; len(b) >= 4 && b[0] == 0xff && b[1] >= 0xe0 && b[1] <= 0xef; {
		size := 2 + int(binary.BigEndian.Uint16(b[2:]))
		segment := b[4:max(4, min(size, len(b)))]
		if exif, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && b[1] == 0xe1 {
			return orientation(exif) > 1
		}
		b = b[min(size, len(b)):]
	}
	return false
}

// orientation returns the orientation in the first directory of Exif data, or 0.
func orientation(exif []byte) uint16 {
	var order binary.ByteOrder = binary.LittleEndian
	if bytes.HasPrefix(exif, []byte("MM")) {
		order = binary.BigEndian
	}
	const tagOrientation, entry = 0x0112, 12
	if len(exif) < 8 || int64(order.Uint32(exif[4:])) > int64(len(exif)-2) {
		return 0
	}
	directory := exif[order.Uint32(exif[4:]):]
	count := order.Uint16(directory)
	for e := directory[2:]; count > 0 && len(e) >= entry; count, e = count-1, e[entry:] {
		if order.Uint16(e) == tagOrientation {
			return order.Uint16(e[8:])
		}
	}
	return 0
}

// plainColours reports whether a colour space is grey or RGB: browsers do not expect others.
func (d *reader) plainColours(v any) bool {
	switch c := d.value(v).(type) {
	case name:
		return c == "DeviceRGB" || c == "DeviceGray" || c == "RGB" || c == "G"
	case array:
		if len(c) < 2 {
			return false
		}
		switch d.value(c[0]) {
		case name("CalRGB"), name("CalGray"):
			return true
		case name("ICCBased"):
			profile, _ := d.value(c[1]).(stream)
			n, _ := integer(d.value(profile.dict["N"]))
			return n == 1 || n == 3
		}
	}
	return false
}

// rectangle is a box, with the lower left corner first.
type rectangle struct{ x0, y0, x1, y1 float64 }

func (d *reader) box(v any) (r rectangle, ok bool) {
	a, _ := d.value(v).(array)
	if len(a) != 4 {
		return r, false
	}
	var n [4]float64
	for i := range n {
		if n[i], ok = number(d.value(a[i])); !ok {
			return r, false
		}
	}
	r = rectangle{min(n[0], n[2]), min(n[1], n[3]), max(n[0], n[2]), max(n[1], n[3])}
	return r, r.x1-r.x0 > 0 && r.y1-r.y0 > 0
}

// within returns the intersection of two boxes, or the first box if they do not intersect.
func (r rectangle) within(o rectangle) rectangle {
	both := rectangle{max(r.x0, o.x0), max(r.y0, o.y0), min(r.x1, o.x1), min(r.y1, o.y1)}
	if both.x0 >= both.x1 || both.y0 >= both.y1 {
		return r
	}
	return both
}

// near reports whether two boxes are about equal, around whether r encloses o.
func (r rectangle) near(o rectangle) bool {
	dx, dy := slack*(o.x1-o.x0), slack*(o.y1-o.y0)
	return math.Abs(r.x0-o.x0) <= dx && math.Abs(r.x1-o.x1) <= dx && math.Abs(r.y0-o.y0) <= dy && math.Abs(r.y1-o.y1) <= dy
}

func (r rectangle) around(o rectangle) bool {
	dx, dy := slack*(o.x1-o.x0), slack*(o.y1-o.y0)
	return r.x0 <= o.x0+dx && r.x1 >= o.x1-dx && r.y0 <= o.y0+dy && r.y1 >= o.y1-dy
}

// contents returns a page's content stream, if it is small.
func (d *reader) contents(v any) ([]byte, bool) {
	parts := array{v}
	if list, ok := d.value(v).(array); ok {
		parts = list
	}
	const maxParts = 16
	if len(parts) > maxParts {
		return nil, false
	}
	var out []byte
	for _, p := range parts {
		s, ok := d.value(p).(stream)
		if !ok {
			return nil, false
		}
		data, err := d.content(s, contentBytes-int64(len(out)), d.value)
		if err != nil {
			return nil, false
		}
		out = append(append(out, data...), '\n')
	}
	return out, true
}
