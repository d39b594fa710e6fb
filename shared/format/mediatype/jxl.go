package mediatype

// bits reads the least significant bits first, as in JPEG XL headers. Past the end it reads zeros and sets over.
type bits struct {
	b    []byte
	at   int
	over bool
}

func (r *bits) read(n int) int {
	v := 0
	for i := range n {
		if r.at>>3 >= len(r.b) {
			r.over = true
			return 0
		}
		v |= int(r.b[r.at>>3]>>(r.at&7)&1) << i
		r.at++
	}
	return v
}

// ratios are the aspect ratios that a JPEG XL size header can name instead of
// a width (ISO/IEC 18181-1, SizeHeader).
var ratios = [8][2]int{{}, {1, 1}, {12, 10}, {4, 3}, {3, 2}, {16, 9}, {5, 4}, {2, 1}}

// sizeJXL reads the size header of a bare codestream, or of the first
// codestream box of a container.
func sizeJXL(b []byte) (width, height int) {
	if b[0] != 0xff {
		for _, part := range boxes(b) {
			if part.kind == "jxlc" {
				b = part.body
				break
			}
			if part.kind == "jxlp" && len(part.body) >= 4 {
				b = part.body[4:]
				break
			}
		}
	}
	if len(b) < 2 || b[0] != 0xff || b[1] != 0x0a {
		return 0, 0
	}
	r := &bits{b: b[2:]}
	small := r.read(1) == 1
	side := func() int {
		if small {
			return (r.read(5) + 1) * 8
		}
		return r.read([4]int{9, 13, 18, 30}[r.read(2)]) + 1
	}
	height = side()
	if ratio := ratios[r.read(3)]; ratio[0] != 0 {
		width = int(int64(height) * int64(ratio[0]) / int64(ratio[1]))
	} else {
		width = side()
	}
	if r.over {
		return 0, 0
	}
	return width, height
}
