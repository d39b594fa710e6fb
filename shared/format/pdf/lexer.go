package pdf

import (
	"bytes"
	"errors"
	"strconv"
)

// Objects of a document (7.3). null is nil, numbers are int64 or float64; the others are:
type (
	name   string
	text   string // the bytes of a string
	array  []any
	dict   map[name]any
	ref    struct{ number, generation int64 }
	opcode string // an operator of a content stream, or a keyword of the file
)

var (
	errMore   = errors.New("pdf: the object is incomplete") // the data ended within the object
	errSyntax = errors.New("pdf: no object")
)

// lexer parses objects.
type lexer struct {
	b    []byte
	at   int
	refs bool // "1 0 R" is a reference, but not in content streams
	end  bool // b is the end of the data: there is no more to read
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == 0 || c == '\f'
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

// cut reports whether the data ends here, but not the document.
func (l *lexer) cut() bool { return l.at >= len(l.b) && !l.end }

// more returns why the data ends within an object.
func (l *lexer) more() error {
	if l.end {
		return errSyntax
	}
	return errMore
}

// space skips whitespace and comments.
func (l *lexer) space() {
	for l.at < len(l.b) {
		switch c := l.b[l.at]; {
		case isSpace(c):
			l.at++
		case c == '%':
			for l.at < len(l.b) && l.b[l.at] != '\n' && l.b[l.at] != '\r' {
				l.at++
			}
		default:
			return
		}
	}
}

// object parses the next object or keyword.
func (l *lexer) object(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errSyntax
	}
	l.space()
	if l.at >= len(l.b) {
		return nil, l.more()
	}
	switch c := l.b[l.at]; {
	case c == '/':
		return l.name()
	case c == '(':
		return l.literal()
	case c == '<':
		if l.at+1 >= len(l.b) {
			return nil, l.more()
		}
		if l.b[l.at+1] == '<' {
			l.at += 2
			return l.dict(depth)
		}
		return l.hex()
	case c == '[':
		l.at++
		return l.array(depth)
	case c >= '0' && c <= '9', c == '+', c == '-', c == '.':
		return l.number()
	case isDelimiter(c):
		return nil, errSyntax
	}
	word, err := l.word()
	if err != nil {
		return nil, err
	}
	switch word {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	default:
		return opcode(word), nil
	}
}

// word returns the bytes up to the next space or delimiter.
func (l *lexer) word() (string, error) {
	start := l.at
	for l.at < len(l.b) && !isSpace(l.b[l.at]) && !isDelimiter(l.b[l.at]) {
		l.at++
	}
	if l.cut() {
		return "", errMore
	}
	return string(l.b[start:l.at]), nil
}

// integer parses an object that must be an integer.
func (l *lexer) integer() (int64, error) {
	v, err := l.object(0)
	n, ok := integer(v)
	if err == nil && !ok {
		err = errSyntax
	}
	return n, err
}

func (l *lexer) name() (any, error) {
	l.at++
	var out []byte
	for l.at < len(l.b) && !isSpace(l.b[l.at]) && !isDelimiter(l.b[l.at]) {
		c := l.b[l.at]
		l.at++
		if c == '#' && l.at+1 < len(l.b) {
			if v, err := strconv.ParseUint(string(l.b[l.at:l.at+2]), 16, 8); err == nil {
				c = byte(v)
				l.at += 2
			}
		}
		out = append(out, c)
	}
	if l.cut() {
		return nil, errMore
	}
	return name(out), nil
}

func (l *lexer) literal() (any, error) {
	l.at++
	var out []byte
	for open := 1; l.at < len(l.b); {
		c := l.b[l.at]
		l.at++
		switch c {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return text(out), nil
			}
		case '\\':
			if l.at >= len(l.b) {
				return nil, l.more()
			}
			out = l.escape(out)
			continue
		}
		out = append(out, c)
	}
	return nil, l.more()
}

// escape parses the sequence after a backslash (7.3.4.2).
func (l *lexer) escape(out []byte) []byte {
	c := l.b[l.at]
	l.at++
	switch c {
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case '\r':
		if l.at < len(l.b) && l.b[l.at] == '\n' {
			l.at++
		}
		return out
	case '\n':
		return out
	}
	if c < '0' || c > '7' {
		return append(out, c)
	}
	v := int(c - '0')
	for i := 0; i < 2 && l.at < len(l.b) && l.b[l.at] >= '0' && l.b[l.at] <= '7'; i++ {
		v = v*8 + int(l.b[l.at]-'0')
		l.at++
	}
	return append(out, byte(v))
}

func (l *lexer) hex() (any, error) {
	l.at++
	var out []byte
	high, odd := byte(0), false
	for l.at < len(l.b) {
		c := l.b[l.at]
		l.at++
		var v byte
		switch {
		case c >= '0' && c <= '9':
			v = c - '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = c | 0x20 - 'a' + 10
		case c == '>':
			if odd {
				out = append(out, high)
			}
			return text(out), nil
		default: // whitespace, and invalid characters
			continue
		}
		if odd = !odd; odd {
			high = v << 4
		} else {
			out = append(out, high|v)
		}
	}
	return nil, l.more()
}

func (l *lexer) array(depth int) (any, error) {
	out := array{}
	for {
		l.space()
		if l.at < len(l.b) && l.b[l.at] == ']' {
			l.at++
			return out, nil
		}
		v, err := l.element(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

// element parses an element of an array or dictionary. An invalid word, such as "nan" or "0,5" from bad writers, is
// null.
func (l *lexer) element(depth int) (any, error) {
	v, err := l.object(depth + 1)
	word, ok := v.(opcode)
	switch {
	case !ok:
		return v, err
	case word == "endobj", word == "stream":
		return nil, errSyntax
	}
	return nil, nil
}

func (l *lexer) dict(depth int) (any, error) {
	out := dict{}
	for {
		l.space()
		if l.at+1 < len(l.b) && l.b[l.at] == '>' && l.b[l.at+1] == '>' {
			l.at += 2
			return out, nil
		}
		if l.at+1 >= len(l.b) {
			return nil, l.more()
		}
		key, err := l.object(depth + 1)
		if err != nil {
			return nil, err
		}
		k, ok := key.(name)
		if !ok {
			return nil, errSyntax
		}
		l.space()
		if bytes.HasPrefix(l.b[l.at:], []byte(">>")) {
			continue // a key without a value
		}
		v, err := l.element(depth)
		if err != nil {
			return nil, err
		}
		out[k] = v
	}
}

// number parses a number, or a reference (two numbers and an R).
func (l *lexer) number() (any, error) {
	v, err := l.plainNumber()
	if err != nil || !l.refs {
		return v, err
	}
	first, ok := v.(int64)
	if !ok || first < 0 {
		return v, nil
	}
	before := l.at
	l.space()
	if l.cut() {
		return nil, errMore
	}
	if l.at < len(l.b) && l.b[l.at] >= '0' && l.b[l.at] <= '9' {
		second, err := l.plainNumber()
		if err != nil {
			return nil, err
		}
		l.space()
		if l.cut() {
			return nil, errMore
		}
		if generation, ok := second.(int64); ok && l.at < len(l.b) && l.b[l.at] == 'R' &&
			(l.at+1 == len(l.b) || isSpace(l.b[l.at+1]) || isDelimiter(l.b[l.at+1])) {
			l.at++
			return ref{first, generation}, nil
		}
	}
	l.at = before
	return v, nil
}

func (l *lexer) plainNumber() (any, error) {
	s, err := l.word()
	if err != nil {
		return nil, err
	}
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, nil
	}
	if len(s) > 40 {
		return nil, errSyntax
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		if v, ok := looseNumber(s); ok {
			return v, nil
		}
		return opcode(s), nil
	}
	return v, nil
}

// looseNumber parses malformed numbers of bad writers, such as "--5" and "1.2-3".
func looseNumber(s string) (float64, bool) {
	for len(s) > 1 && (s[0] == '-' || s[0] == '+') && (s[1] == '-' || s[1] == '+') {
		s = s[1:]
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '-' {
			s = s[:i]
			break
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil || s == "." || s == "-"
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func integer(v any) (int64, bool) {
	n, ok := v.(int64)
	return n, ok
}
