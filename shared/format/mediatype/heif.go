package mediatype

import (
	"bytes"
	"math"
)

// box is one box of an ISO base media file (ISO/IEC 14496-12): its four-letter type and its payload, truncated where
// the input ends.
type box struct {
	kind string
	body []byte
}

// boxes splits b into boxes and stops at the first invalid one. It reads at most 512: an image needs a few dozen.
func boxes(b []byte) []box {
	var out []box
	for len(b) >= 8 && len(out) < 512 {
		size, header := uint64(be32(b)), 8
		switch {
		case size == 1 && len(b) >= 16:
			size, header = uint64(be32(b[8:]))<<32|uint64(be32(b[12:])), 16
		case size == 0:
			size = uint64(len(b))
		}
		if size < uint64(header) {
			break
		}
		end := int(min(size, uint64(len(b))))
		out = append(out, box{string(b[4:8]), b[header:end]})
		b = b[end:]
	}
	return out
}

func child(list []box, kind string) []byte {
	for _, b := range list {
		if b.kind == kind {
			return b.body
		}
	}
	return nil
}

// sizeHEIF returns the size of the primary item of a HEIF or AVIF file (ISO/IEC 23008-12): the ispe property associated
// with it, turned by irot. If the association cannot be followed, the largest ispe counts.
func sizeHEIF(b []byte) (width, height int) {
	meta := child(boxes(b), "meta")
	if len(meta) < 4 {
		return 0, 0
	}
	inMeta := boxes(meta[4:])
	inIprp := boxes(child(inMeta, "iprp"))
	props := boxes(child(inIprp, "ipco"))
	turned := false
	for _, n := range associated(child(inMeta, "pitm"), child(inIprp, "ipma")) {
		if n < 1 || n > len(props) {
			continue
		}
		switch p := props[n-1]; {
		case p.kind == "ispe":
			width, height = ispe(p.body)
		case p.kind == "irot" && len(p.body) > 0:
			turned = p.body[0]&1 == 1
		}
	}
	if width == 0 || height == 0 {
		for _, p := range props {
			if p.kind != "ispe" {
				continue
			}
			if w, h := ispe(p.body); int64(w)*int64(h) > int64(width)*int64(height) {
				width, height = w, h
			}
		}
	}
	if turned {
		return height, width
	}
	return width, height
}

func ispe(b []byte) (width, height int) {
	if len(b) < 12 {
		return 0, 0
	}
	w, h := be32(b[4:]), be32(b[8:])
	if w > math.MaxInt32 || h > math.MaxInt32 {
		return 0, 0
	}
	return int(w), int(h)
}

// associated returns the 1-based property numbers in the ipma box for the item in the pitm box.
func associated(pitm, ipma []byte) []int {
	if len(pitm) < 6 || len(ipma) < 8 {
		return nil
	}
	primary := uint32(be16(pitm[4:]))
	if pitm[0] > 0 {
		if len(pitm) < 8 {
			return nil
		}
		primary = be32(pitm[4:])
	}
	wideID, wideIndex := ipma[0] > 0, ipma[3]&1 == 1
	r := bytes.NewReader(ipma[8:])
	read := func(n int) (v uint32, ok bool) {
		for range n {
			c, err := r.ReadByte()
			if err != nil {
				return 0, false
			}
			v = v<<8 | uint32(c)
		}
		return v, true
	}
	width := func(wide bool, long, short int) int {
		if wide {
			return long
		}
		return short
	}
	for range be32(ipma[4:]) {
		id, ok := read(width(wideID, 4, 2))
		if !ok {
			return nil
		}
		count, ok := read(1)
		if !ok {
			return nil
		}
		var list []int
		for range count {
			n, ok := read(width(wideIndex, 2, 1))
			if !ok {
				return nil
			}
			mask := uint32(width(wideIndex, 0x7fff, 0x7f)) // the top bit means essential
			list = append(list, int(n&mask))
		}
		if id == primary {
			return list
		}
	}
	return nil
}
