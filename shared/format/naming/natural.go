package naming

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Compare compares two names in natural order: digit runs by value, everything else rune by rune, ignoring case and
// full-width forms. Names that are equal so far are compared byte by byte, so only identical names give 0.
//
// The order is total. (Comparing equal numbers of different length as text would not be: "a01b" < "a1" < "a1a" <
// "a01b".)
func Compare(a, b string) int {
	if c := compareFolded(a, b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// ComparePath compares two slash-separated paths in natural order, folder by folder, so that everything in "c2" comes
// before everything in "c10" and "c2 extra".
func ComparePath(a, b string) int {
	for {
		headA, restA, moreA := strings.Cut(a, "/")
		headB, restB, moreB := strings.Cut(b, "/")
		if headA != headB {
			return Compare(headA, headB)
		}
		switch {
		case !moreA && !moreB:
			return 0
		case !moreA:
			return -1
		case !moreB:
			return 1
		}
		a, b = restA, restB
	}
}

// CompareFile compares two slash-separated paths of books like ComparePath, but first by their names without extension:
// "1.cbz" comes before "1-2.cbz" and "1 extra.cbz", although a dot sorts after a hyphen and a space. Numbers in Chinese
// characters count as numbers, 上, 中, 下 as 1, 2, 3, and so do the parts 前, 中, 後. It is the order of app.file_order, in
// which a scan numbers books.
func CompareFile(a, b string) int {
	if c := ComparePath(counted(strings.TrimSuffix(a, path.Ext(a))), counted(strings.TrimSuffix(b, path.Ext(b)))); c != 0 {
		return c
	}
	return ComparePath(a, b)
}

var (
	countAfter   = lazily(`(?:第|その|其[のノ之]|(?:^|[^0-9])[卷巻][ノの之]?)[ \t]*$`)
	countBefore  = lazily(`^[ \t]*[巻卷冊册話话回章集]`)
	countedPart  = lazily(`[上中下][巻卷冊册篇編编集]|[前後后][篇編编]|(?:^|[\s(（\[【「/])[上中下](?:$|[\s)）\]】」/])`)
	countedParts = strings.NewReplacer("上", "1", "中", "2", "下", "3", "前", "1", "後", "3", "后", "3")
)

const countDigits = "〇零一二三四五六七八九十百千"

// counted writes volume and chapter numbers with digits.
func counted(name string) string {
	if !strings.ContainsAny(name, "上中下前後后"+countDigits) {
		return name
	}
	done := ""
	for rest := name; rest != ""; {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, countDigits))]
		if number == "" {
			n := strings.IndexAny(rest, countDigits)
			if n < 0 {
				n = len(rest)
			}
			done, rest = done+rest[:n], rest[n:]
			continue
		}
		rest = rest[len(number):]
		if countAfter.MatchString(done) || countBefore.MatchString(rest) {
			number = arabic(number)
		}
		done += number
	}
	return countedPart.ReplaceAllStringFunc(done, countedParts.Replace)
}

func compareFolded(a, b string) int {
	for a != "" && b != "" {
		if n := commonPrefix(a, b); n > 0 {
			a, b = a[n:], b[n:]
			continue
		}
		if isDigit(a) && isDigit(b) {
			c, restA, restB := compareDigits(a, b)
			if c != 0 {
				return c
			}
			a, b = restA, restB
			continue
		}
		ra, sizeA := next(a)
		rb, sizeB := next(b)
		if ra != rb {
			if ra < rb {
				return -1
			}
			return 1
		}
		a, b = a[sizeA:], b[sizeB:]
	}
	return len(a) - len(b)
}

// commonPrefix returns how many bytes a and b share before the first digit or non-ASCII byte.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if c := a[i]; c != b[i] || c >= utf8.RuneSelf || c >= '0' && c <= '9' {
			return i
		}
	}
	return n
}

// compareDigits compares the digit runs at the start of a and b by value, for any length, and returns what follows
// them.
func compareDigits(a, b string) (c int, restA, restB string) {
	a, b = skipZeros(a), skipZeros(b)
	for {
		moreA, moreB := isDigit(a), isDigit(b)
		if !moreA || !moreB {
			switch {
			case moreA:
				return 1, "", ""
			case moreB:
				return -1, "", ""
			}
			return c, a, b
		}
		ra, sizeA := next(a)
		rb, sizeB := next(b)
		if c == 0 && ra != rb {
			// For runs of equal length, the first different digit decides.
			c = int(ra) - int(rb)
		}
		a, b = a[sizeA:], b[sizeB:]
	}
}

func skipZeros(s string) string {
	for s != "" {
		r, size := next(s)
		if r != '0' {
			return s
		}
		s = s[size:]
	}
	return s
}

func isDigit(s string) bool {
	if s == "" {
		return false
	}
	r, _ := next(s)
	return r >= '0' && r <= '9'
}

// next decodes the first rune of s, folded for comparison.
func next(s string) (rune, int) {
	if c := s[0]; c < utf8.RuneSelf {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		return rune(c), 1
	}
	r, size := utf8.DecodeRuneInString(s)
	if r >= '！' && r <= '～' { // full-width ASCII
		r -= '！' - '!'
	}
	return unicode.ToLower(r), size
}
