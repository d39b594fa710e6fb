package strategy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/strategy"
)

// Every line of every example in the documentation is run.
func TestDocumentedExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/library.md")
	if err != nil {
		t.Fatal(err)
	}
	seen, lines := map[string]bool{}, 0
	for _, block := range strings.Split(string(text), "\n```")[1:] {
		head, body, _ := strings.Cut(block, "\n")
		what, rest, ok := strings.Cut(head, " ")
		if !ok {
			continue // end of a block
		}
		name, config, _ := strings.Cut(rest, " ")
		o := strategy.Options{Series: "series_volume", Book: "filename", Number: "file_order"}
		switch what {
		case "series":
			o.Series, o.SeriesConfig = name, json.RawMessage(config)
		case "book":
			o.Book, o.BookConfig = name, json.RawMessage(config)
		case "number":
			o.Number, o.NumberConfig = name, json.RawMessage(config)
		default:
			t.Fatalf("a block of %q", what)
		}
		set, bad := strategy.New(o)
		if bad != nil {
			t.Errorf("%s: %v", head, bad)
			continue
		}
		for line := range strings.Lines(body) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			left, want, ok := strings.Cut(line, " -> ")
			if !ok {
				t.Errorf("%s: %q has no arrow", head, line)
				continue
			}
			key, meta := example(t, left)
			f := set.Read(key, meta)
			got := map[string]func(strategy.File) string{"series": showSeries, "book": showBook, "number": showNumber}[what](f)
			if got != want {
				t.Errorf("%s: %s\n  got  %s\n  want %s", head, left, got, want)
			}
			seen[what+" "+name], lines = true, lines+1
		}
	}
	if len(seen) != 6+4+4 || lines < 50 { // series_name has no example for one file: see TestTitle
		t.Errorf("%d strategies with %d examples: %v", len(seen), lines, seen)
	}
}

// example parses "key <title; number; volume>".
func example(t *testing.T, s string) (string, *strategy.Meta) {
	key, rest, ok := strings.Cut(s, " <")
	if !ok {
		return s, nil
	}
	parts := strings.Split(strings.TrimSuffix(rest, ">"), ";")
	if len(parts) != 3 {
		t.Fatalf("metadata %q", rest)
	}
	m := strategy.Meta{Title: strings.TrimSpace(parts[0])}
	if n, err := strconv.ParseFloat(strings.TrimSpace(parts[1]), 64); err == nil {
		m.Number, m.Chapter = &n, &n
	}
	if n, err := strconv.Atoi(strings.TrimSpace(parts[2])); err == nil {
		m.Volume = &n
	}
	return key, &m
}

func showSeries(f strategy.File) string {
	s := f.Name
	if f.Place.Volume != nil {
		s += fmt.Sprintf(" | volume %d", *f.Place.Volume)
	}
	for label, v := range map[string]string{"publisher": f.Publisher, "imprint": f.Imprint, "author": f.Author, "shelf": f.Extra["shelf"]} {
		if v != "" {
			s += " | " + label + " " + v
		}
	}
	if f.Later {
		s += " | may move"
	}
	return s
}

func showBook(f strategy.File) string {
	s := f.Title
	if f.Volume != nil {
		s += fmt.Sprintf(" | volume %d", *f.Volume)
	}
	if f.Chapter != nil {
		s += " | chapter " + strconv.FormatFloat(*f.Chapter, 'f', -1, 64)
	}
	return s
}

func showNumber(f strategy.File) string {
	switch {
	case f.Position:
		return "position"
	case f.Number == nil:
		return "none"
	}
	return strconv.FormatFloat(*f.Number, 'f', -1, 64)
}
