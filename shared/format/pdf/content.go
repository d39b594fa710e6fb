package pdf

// state is the graphics state that operators change and q and Q save and restore.
type state struct {
	m         [6]float64 // the transformation (8.3.3)
	invisible bool       // text: rendering mode 3
}

// maxState limits nested q operators.
const maxState = 64

// onlyImage runs a content stream. If all it does is to show one XObject, which fills the page upright and not
// mirrored, it returns that XObject. Invisible text, as in scans, does not count. plain reports whether a graphics
// state leaves an image unchanged.
func onlyImage(content []byte, page rectangle, plain func(state name) bool) (shown name, ok bool) {
	const maxOperands = 512
	l := &lexer{b: content, end: true}
	p := painter{page: page, plain: plain, now: state{m: [6]float64{1, 0, 0, 1, 0, 0}}}
	var operands []any
	for l.space(); l.at < len(l.b); l.space() {
		v, err := l.object(0)
		if err != nil {
			return "", false
		}
		if op, ok := v.(opcode); ok {
			if !p.run(op, operands) {
				return "", false
			}
			operands = operands[:0]
		} else if operands = append(operands, v); len(operands) > maxOperands {
			return "", false
		}
	}
	return p.shown, p.shown != ""
}

// painter is the state of a running content stream.
type painter struct {
	page  rectangle
	plain func(state name) bool
	now   state
	kept  []state
	clip  *rectangle // the current path
	shown name
}

// run executes one operator. It reports false if the page then is more than one image.
func (p *painter) run(op opcode, operands []any) bool {
	switch op {
	case "q":
		p.kept = append(p.kept, p.now)
		return len(p.kept) <= maxState
	case "Q":
		last := len(p.kept) - 1
		if last < 0 {
			return false
		}
		p.now, p.kept = p.kept[last], p.kept[:last]
	case "cm":
		var m [6]float64
		ok := numbers(operands, m[:])
		p.now.m = multiply(m, p.now.m)
		return ok
	case "Do":
		first := p.shown == ""
		n, ok := one[name](operands)
		p.shown = n
		return ok && first && p.now.fills(p.page)
	case "gs":
		n, ok := one[name](operands)
		return ok && p.plain(n)
	case "re":
		first := p.clip == nil
		r, ok := p.now.rectangle(operands)
		p.clip = &r
		return ok && first
	case "n": // ends a path without painting
		p.clip = nil
	case "W", "W*":
		return p.clip != nil && p.clip.around(p.page)
	case "Tr":
		n, ok := one[int64](operands)
		p.now.invisible = ok && n == 3
	case "Tj", "TJ", "'", "\"":
		return p.now.invisible
	case "BDC":
		return len(operands) == 0 || operands[0] != name("OC") // a layer (8.11.3.2), which may be hidden
	case "BT", "ET", "Tf", "Td", "TD", "Tm", "T*", "Tc", "Tw", "Tz", "TL", "Ts", // text; only Tj shows any
		"w", "J", "j", "M", "d", "i", "ri", // style of lines
		"g", "G", "rg", "RG", "k", "K", "cs", "CS", // colours: an image has its own
		"BMC", "EMC", "MP", "DP", "BX", "EX": // marks
	default:
		return false
	}
	return true
}

func one[T any](operands []any) (v T, ok bool) {
	if len(operands) != 1 {
		return v, false
	}
	v, ok = operands[0].(T)
	return v, ok
}

// numbers stores the operands, which must be as many numbers.
func numbers(operands []any, into []float64) (ok bool) {
	if len(operands) != len(into) {
		return false
	}
	for i, v := range operands {
		if into[i], ok = number(v); !ok {
			return false
		}
	}
	return true
}

// multiply returns the product of a and b, which the operator cm uses (8.3.4).
func multiply(a, b [6]float64) [6]float64 {
	return [6]float64{
		a[0]*b[0] + a[1]*b[2], a[0]*b[1] + a[1]*b[3],
		a[2]*b[0] + a[3]*b[2], a[2]*b[1] + a[3]*b[3],
		a[4]*b[0] + a[5]*b[2] + b[4], a[4]*b[1] + a[5]*b[3] + b[5],
	}
}

// upright reports whether the transformation neither rotates nor mirrors.
func (s state) upright() bool {
	small := 1e-3 * (s.m[0] + s.m[3])
	return s.m[0] > 0 && s.m[3] > 0 && s.m[1] <= small && s.m[1] >= -small && s.m[2] <= small && s.m[2] >= -small
}

// fills reports whether the unit square, into which an image is drawn, covers the page.
func (s state) fills(page rectangle) bool {
	return s.upright() && rectangle{s.m[4], s.m[5], s.m[4] + s.m[0], s.m[5] + s.m[3]}.near(page)
}

func (s state) rectangle(operands []any) (rectangle, bool) {
	var n [4]float64
	if !s.upright() || !numbers(operands, n[:]) {
		return rectangle{}, false
	}
	x, y := n[0]*s.m[0]+s.m[4], n[1]*s.m[3]+s.m[5]
	w, h := n[2]*s.m[0], n[3]*s.m[3]
	return rectangle{min(x, x+w), min(y, y+h), max(x, x+w), max(y, y+h)}, true
}
