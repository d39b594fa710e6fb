package handlebars

import (
	"cmp"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// helper computes a value from its arguments.
type helper struct {
	least, most int // number of arguments
	do          func(a []any) any
}

func (h helper) call(args []any) (any, error) {
	if len(args) < h.least || len(args) > h.most {
		return nil, fmt.Errorf("a helper takes %d to %d values, but is given %d", h.least, h.most, len(args))
	}
	for len(args) < h.most {
		args = append(args, nil)
	}
	made := h.do(args)
	if made == tooMuch {
		return nil, errOutput
	}
	return made, nil
}

// much is the type of tooMuch, which a helper returns instead of a value that would be too large.
type much struct{}

var tooMuch any = much{}

// helpers by their names.
var helpers = map[string]helper{
	"lowercase":  {1, 1, func(a []any) any { return strings.ToLower(textOf(a[0])) }},
	"uppercase":  {1, 1, func(a []any) any { return strings.ToUpper(textOf(a[0])) }},
	"capitalize": {1, 1, func(a []any) any { return capitalized(textOf(a[0])) }},
	"trim":       {1, 1, func(a []any) any { return strings.TrimSpace(textOf(a[0])) }},
	"truncate":   {2, 3, func(a []any) any { return truncated(textOf(a[0]), number(a[1]), textOf(a[2])) }},
	"replace":    {3, 3, func(a []any) any { return replaced(textOf(a[0]), textOf(a[1]), textOf(a[2])) }},
	"split":      {2, 2, func(a []any) any { return parts(textOf(a[0]), textOf(a[1])) }},
	"join":       {1, 2, func(a []any) any { return joined(texts(a[0]), textOf(a[1])) }},
	"urlencode":  {1, 1, func(a []any) any { return url.QueryEscape(textOf(a[0])) }},
	"padStart":   {2, 3, func(a []any) any { return padded(textOf(a[0]), number(a[1]), textOf(a[2])) }},
	"default": {2, 2, func(a []any) any {
		if textOf(a[0]) == "" {
			return a[1]
		}
		return a[0]
	}},
	"length": {1, 1, func(a []any) any { return length(a[0]) }},
	"lookup": {2, 2, func(a []any) any { return member(a[0], textOf(a[1])) }},
	"math":   {3, 3, func(a []any) any { return calculated(a[0], textOf(a[1]), a[2]) }},
}

// conditions are blocks that are shown if the condition holds. As subexpressions they are true or false.
var conditions = map[string]func(a []any) bool{
	"if":          func(a []any) bool { return isTrue(a[0]) },
	"unless":      func(a []any) bool { return !isTrue(a[0]) },
	"exists":      func(a []any) bool { return a[0] != nil && a[0] != "" },
	"ifEquals":    func(a []any) bool { return len(a) == 2 && textOf(a[0]) == textOf(a[1]) },
	"ifNotEquals": func(a []any) bool { return len(a) == 2 && textOf(a[0]) != textOf(a[1]) },
	"gt":          func(a []any) bool { return compared(a) > 0 },
	"lt":          func(a []any) bool { return compared(a) < 0 },
	"and":         func(a []any) bool { return !slices.ContainsFunc(a, func(v any) bool { return !isTrue(v) }) },
	"or":          func(a []any) bool { return slices.ContainsFunc(a, isTrue) },
	"includes":    func(a []any) bool { return len(a) == 2 && slices.Contains(texts(a[0]), textOf(a[1])) },
}

// compared compares two numbers. A value that is no number is neither less nor greater.
func compared(a []any) int {
	if len(a) != 2 {
		return 0
	}
	x, y := number(a[0]), number(a[1])
	if math.IsNaN(x) || math.IsNaN(y) {
		return 0
	}
	return cmp.Compare(x, y)
}

// number parses a value or its text as a number, or returns NaN.
func number(v any) float64 {
	n, err := strconv.ParseFloat(textOf(v), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

func capitalized(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || r == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

func truncated(s string, n float64, suffix string) string {
	if r := []rune(s); n >= 0 && float64(len(r)) > n {
		return string(r[:int(n)]) + suffix
	}
	return s
}

func replaced(s, from, to string) any {
	if from == "" {
		return s
	}
	if len(s)+strings.Count(s, from)*(len(to)-len(from)) > maxOutput {
		return tooMuch
	}
	return strings.ReplaceAll(s, from, to)
}

func joined(parts []string, by string) any {
	n := len(by) * len(parts)
	for _, p := range parts {
		n += len(p)
	}
	if n > maxOutput {
		return tooMuch
	}
	return strings.Join(parts, by)
}

func parts(s, by string) any {
	if by == "" && len(s) > maxParts || by != "" && strings.Count(s, by) >= maxParts {
		return tooMuch
	}
	out := []any{}
	for _, p := range strings.Split(s, by) {
		out = append(out, p)
	}
	return out
}

// padded adds at most 100 characters of padding.
func padded(s string, n float64, with string) string {
	if with == "" {
		with = " "
	}
	missing := n - float64(len([]rune(s)))
	if !(missing > 0) {
		return s
	}
	return strings.Repeat(string([]rune(with)[:1]), int(min(missing, 100))) + s
}

// texts returns the elements of a list as texts, or the text of a single value.
func texts(v any) []string {
	list, ok := v.([]any)
	if !ok {
		return []string{textOf(v)}
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = textOf(e)
	}
	return out
}

func length(v any) any {
	switch v := v.(type) {
	case []any:
		return float64(len(v))
	case map[string]any:
		return float64(len(v))
	}
	return float64(len([]rune(textOf(v))))
}

// calculated returns nil if the result is no number.
func calculated(a any, op string, b any) any {
	x, y := number(a), number(b)
	switch op {
	case "+":
		x += y
	case "-":
		x -= y
	case "*":
		x *= y
	case "/":
		x /= y
	case "%":
		x = math.Mod(x, y)
	default:
		return nil
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}
