package library

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"
)

// Limits of excludedPatterns. Alternatives multiply, so one pattern may have only a few.
const (
	maxPatterns    = 100
	maxGlob        = 500 // bytes
	maxGroups      = 2   // {…} per pattern
	maxAlternative = 20  // commas in them
)

// fold maps texts that differ only in case or in the encoding of accents to the same text.
func fold(s string) string { return norm.NFC.String(strings.ToLower(s)) }

// Excluded parses newline-separated globs and returns a function that reports whether a key, relative to the library's
// root, is excluded. Matching ignores case and the encoding of accents. A pattern without a slash matches at any depth,
// one with a slash from the root. A pattern that matches a folder excludes everything below it. The error names the
// first invalid pattern.
func Excluded(patterns string) (func(key string) bool, error) {
	var globs []string
	for _, line := range strings.Split(patterns, "\n") {
		p := fold(strings.TrimSpace(line))
		if p == "" {
			continue
		}
		if err := checkGlob(p); err != nil {
			return nil, err
		}
		p = strings.TrimSuffix(p, "/")
		if strings.Contains(p, "/") {
			p = strings.TrimPrefix(p, "/")
		} else {
			p = "**/" + p
		}
		globs = append(globs, p)
	}
	if len(globs) > maxPatterns {
		return nil, fmt.Errorf("there are %d patterns; the limit is %d", len(globs), maxPatterns)
	}
	if len(globs) == 0 {
		return func(string) bool { return false }, nil
	}
	return func(key string) bool {
		key = fold(key)
		for end := 0; end < len(key); {
			if next := strings.IndexByte(key[end:], '/'); next >= 0 {
				end += next
			} else {
				end = len(key)
			}
			for _, g := range globs {
				if doublestar.MatchUnvalidated(g, key[:end]) {
					return true
				}
			}
			end++
		}
		return false
	}, nil
}

func checkGlob(p string) error {
	switch {
	case len(p) > maxGlob:
		return fmt.Errorf("the pattern %.40q… has %d bytes; the limit is %d", p, len(p), maxGlob)
	case strings.Count(p, "{") > maxGroups || strings.Count(p, "{") > 0 && strings.Count(p, ",") > maxAlternative:
		return fmt.Errorf("the pattern %q has too many alternatives: at most %d groups and %d commas; use several lines", p, maxGroups, maxAlternative)
	case strings.Trim(p, "*/") == "":
		return fmt.Errorf("the pattern %q would leave out everything", p)
	case strings.ContainsRune(p, 0) || !doublestar.ValidatePattern(p):
		return fmt.Errorf("the pattern %q is not a valid glob: check its brackets and braces", p)
	}
	return nil
}
