package cronexpr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// field is the grammar of one field: a list of *, n, a-b, each with an optional step after a slash, and special words
// in the two day fields.
type field struct {
	name     string
	min, max int
	words    map[string]int
	special  func(item string) bool
}

var grammar = [6]field{
	{name: "second", min: 0, max: 59},
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of month", min: 1, max: 31, special: lastOrWorkday},
	{name: "month", min: 1, max: 12, words: map[string]int{"JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6,
		"JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11, "DEC": 12}},
	{name: "day of week", min: 0, max: 7, special: lastOrNth,
		words: map[string]int{"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}},
}

// normalise checks a field and replaces words with numbers.
func (f field) normalise(s string) (string, error) {
	if s == "?" && f.special != nil {
		return "*", nil
	}
	items := strings.Split(s, ",")
	for i, item := range items {
		normal, err := f.item(item)
		if err != nil {
			return "", err
		}
		if normal == "*" && len(items) > 1 {
			return "", errors.New("* already matches every value: remove the other items of the list")
		}
		items[i] = normal
	}
	return strings.Join(items, ","), nil
}

func (f field) item(s string) (string, error) {
	if f.special != nil && f.special(s) {
		return s, nil
	}
	base, step, stepped := strings.Cut(s, "/")
	if stepped {
		if n, err := number(step); err != nil || n < 1 || n > f.max {
			return "", fmt.Errorf("the step %q must be a number from 1 to %d", step, f.max)
		}
	}
	if base == "*" {
		if step == "1" {
			return "*", nil
		}
		return s, nil
	}
	from, to, ranged := strings.Cut(base, "-")
	low, err := f.value(from)
	if err != nil {
		return "", err
	}
	high := low
	switch {
	case ranged:
		if high, err = f.value(to); err != nil {
			return "", err
		}
	case stepped: // n/step runs to the end
		high = f.max
		if f.name == "day of week" {
			high = 6
		}
	}
	if high < low {
		return "", fmt.Errorf("the range %s-%s runs backwards", from, to)
	}
	if !ranged && !stepped {
		return strconv.Itoa(low), nil
	}
	normal := fmt.Sprintf("%d-%d", low, high)
	if stepped {
		normal += "/" + step
	}
	return normal, nil
}

func (f field) value(s string) (int, error) {
	if n, ok := f.words[s]; ok {
		return n, nil
	}
	n, err := number(s)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%q must be a number from %d to %d", s, f.min, f.max)
	}
	return n, nil
}

// number parses one to three digits, without a sign.
func number(s string) (int, error) {
	if s == "" || len(s) > 3 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("not a number")
	}
	return strconv.Atoi(s)
}

// lastOrWorkday accepts L, the last day of the month, and 15W, the working day
// nearest to the 15th.
func lastOrWorkday(s string) bool {
	if s == "L" {
		return true
	}
	day, ok := strings.CutSuffix(s, "W")
	n, err := number(day)
	return ok && err == nil && n >= 1 && n <= 31
}

// lastOrNth accepts 5L, the last Friday, and 5#2, the second Friday of a month.
func lastOrNth(s string) bool {
	if day, ok := strings.CutSuffix(s, "L"); ok {
		n, err := number(day)
		return err == nil && n <= 7
	}
	day, nth, ok := strings.Cut(s, "#")
	n, err := number(day)
	k, err2 := number(nth)
	return ok && err == nil && err2 == nil && n <= 7 && k >= 1 && k <= 5
}
