package pdf

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/longbox/longbox/shared/format/archive"
)

// stream is a dictionary and the location of its bytes.
type stream struct {
	dict   dict
	offset int64
	object ref
}

// content returns the plain bytes of a structural stream, at most limit. value resolves references of its dictionary.
func (d *reader) content(s stream, limit int64, value func(any) any) ([]byte, error) {
	filters, params := s.filters(value)
	const maxFilters = 4
	if len(filters) > maxFilters {
		return nil, damaged("a stream has %d filters", len(filters))
	}
	raw, err := d.raw(s, value(s.dict["Length"]), limit)
	if err != nil {
		return nil, err
	}
	if d.key != nil {
		var ok bool
		if raw, ok = d.key.open(d.key.streams, s.object, raw); !ok {
			return nil, damaged("an encrypted stream cannot be decrypted")
		}
	}
	for i, f := range filters {
		switch f {
		case "FlateDecode", "Fl":
			if raw, err = inflate(raw, limit); err != nil {
				return nil, err
			}
			if raw, err = unpredict(raw, params[i]); err != nil {
				return nil, err
			}
		case "ASCIIHexDecode", "AHx":
			l := &lexer{b: slices.Concat([]byte("<"), raw, []byte(">"))}
			v, _ := l.hex() // it ends at the first >
			raw = []byte(v.(text))
		case "ASCII85Decode", "A85":
			if raw, err = base85(raw, limit); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%w: %s", errFilter, f)
		}
	}
	return raw, nil
}

// raw returns the stored bytes of a stream, at most limit. If its length is missing or wrong, the stream ends before
// the keyword, as in viewers.
func (d *reader) raw(s stream, length any, limit int64) ([]byte, error) {
	const ahead = 16 // bytes in which the keyword must start
	rest := d.size - s.offset
	n, ok := integer(length)
	if ok = ok && n >= 0 && n <= rest; ok {
		if n > limit {
			return nil, tooLarge(n, limit)
		}
		b := make([]byte, min(n+ahead, rest))
		if err := d.readAt(b, s.offset); err != nil {
			return nil, err
		}
		if bytes.HasPrefix(bytes.TrimLeft(b[n:], "\r\n\t "), []byte("end")) {
			return b[:n], nil
		}
	}
	for size := int64(4 << 10); ; size *= 4 {
		most := min(limit+ahead, rest)
		b := make([]byte, min(size, most))
		if err := d.readAt(b, s.offset); err != nil {
			return nil, err
		}
		if end := bytes.Index(b, []byte("endstream")); end >= 0 {
			return bytes.TrimSuffix(bytes.TrimSuffix(b[:end], []byte("\n")), []byte("\r")), nil
		}
		if size < most {
			continue
		}
		if ok {
			return b[:min(n, most)], nil
		}
		return nil, damaged("a stream has no end")
	}
}

// errFilter means that the compression of a stream is not supported.
var errFilter = errors.New("pdf: filter")

func tooLarge(n, limit int64) error {
	return archive.Errorf(archive.TooLarge, "a stream of the PDF document has %d bytes, the limit is %d", n, limit)
}

// filters returns the names of a stream's filters and the parameters of each.
func (s stream) filters(value func(any) any) ([]name, []dict) {
	var names []name
	switch f := value(s.dict["Filter"]).(type) {
	case name:
		names = []name{f}
	case array:
		for _, v := range f {
			n, _ := value(v).(name)
			names = append(names, n)
		}
	}
	params := make([]dict, len(names))
	switch p := value(s.dict["DecodeParms"]).(type) {
	case dict:
		if len(params) > 0 {
			params[0] = p
		}
	case array:
		for i := range min(len(p), len(params)) {
			params[i], _ = value(p[i]).(dict)
		}
	}
	return names, params
}

func inflate(raw []byte, limit int64) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, damaged("a compressed stream")
	}
	out, err := io.ReadAll(io.LimitReader(z, limit+1))
	if int64(len(out)) > limit {
		return nil, tooLarge(int64(len(out)), limit)
	}
	// Some writers omit the checksum, so decompressed data is used in spite of an error.
	if err != nil && len(out) == 0 {
		return nil, damaged("a compressed stream")
	}
	return out, nil
}

// base85 decodes ASCII base-85 (7.4.3), up to its end marker or the end of the stream.
func base85(raw []byte, limit int64) ([]byte, error) {
	raw, _, _ = bytes.Cut(bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("<~")), []byte("~"))
	zeros := bytes.Count(raw, []byte("z")) // four bytes each; otherwise five digits are four bytes
	size := 4*zeros + 4*((len(raw)-zeros+4)/5)
	if int64(size) > limit {
		return nil, tooLarge(int64(size), limit)
	}
	out := make([]byte, size)
	n, _, err := ascii85.Decode(out, raw, true)
	if err != nil {
		return nil, damaged("a stream has invalid ASCII85 data")
	}
	return out[:n], nil
}

// unpredict reverses the predictors of 7.4.4.4, as cross-reference streams use them.
func unpredict(data []byte, p dict) ([]byte, error) {
	predictor, _ := integer(p["Predictor"])
	if predictor < 10 {
		if predictor == 2 {
			return nil, damaged("a structural stream uses a predictor for images")
		}
		return data, nil
	}
	columns, ok := integer(p["Columns"])
	if !ok {
		columns = 1
	}
	const maxColumns = 1 << 16
	if columns < 1 || columns > maxColumns {
		return nil, damaged("a predictor has %d columns", columns)
	}
	row := int(columns)
	out := make([]byte, 0, len(data))
	previous := make([]byte, row)
	for len(data) > row {
		kind, line := data[0], data[1:1+row]
		data = data[1+row:]
		for i := range line {
			var left, upperLeft byte
			if i > 0 {
				left, upperLeft = line[i-1], previous[i-1]
			}
			switch kind {
			case 1:
				line[i] += left
			case 2:
				line[i] += previous[i]
			case 3:
				line[i] += byte((int(left) + int(previous[i])) / 2)
			case 4:
				line[i] += paeth(left, previous[i], upperLeft)
			}
		}
		out = append(out, line...)
		previous = line
	}
	return out, nil
}

func paeth(a, b, c byte) byte {
	p := int(a) + int(b) - int(c)
	pa, pb, pc := abs(p-int(a)), abs(p-int(b)), abs(p-int(c))
	switch {
	case pa <= pb && pa <= pc:
		return a
	case pb <= pc:
		return b
	}
	return c
}

func abs(n int) int { return max(n, -n) }
