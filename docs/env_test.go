package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	tag = regexp.MustCompile(`env:"([A-Z][A-Z0-9_]*)[^"]*"(?:\s+envDefault:"([^"]*)")?`)
	row = regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]*)` \\|([^|]*)\\|")
)

type variable struct{ name, otherwise, file string }

// Every variable with an env tag has a row in operator.md with the default of the code. Every row is such a variable,
// or one of the few that are read directly.
func TestEveryVariableIsDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("operator.md")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string][]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		described[m[1]] = append(described[m[1]], strings.Trim(strings.TrimSpace(m[2]), "`"))
	}
	known := map[string]bool{}
	for _, v := range variables(t) {
		known[v.name] = true
		defaults, ok := described[v.name]
		switch {
		case !ok:
			t.Errorf("%s (%s) is not in operator.md", v.name, v.file)
		case v.otherwise != "" && !slices.Contains(defaults, v.otherwise):
			t.Errorf("%s (%s): the default is %q, operator.md says %q", v.name, v.file, v.otherwise, defaults)
		}
	}
	if len(known) < 40 {
		t.Fatalf("only %d variables found in the code: the search is broken", len(known))
	}
	for name := range described {
		if !known[name] && !direct(t, name) {
			t.Errorf("operator.md describes %s, which nothing reads", name)
		}
	}
}

func variables(t *testing.T) []variable {
	t.Helper()
	var out []variable
	source(t, func(path, text string) {
		for _, m := range tag.FindAllStringSubmatch(text, -1) {
			out = append(out, variable{m[1], m[2], path})
		}
	})
	return out
}

// direct reports whether the code reads the variable without a tag.
func direct(t *testing.T, name string) bool {
	t.Helper()
	found := false
	source(t, func(_, text string) {
		found = found || strings.Contains(text, `os.Getenv("`+name+`")`) || strings.Contains(text, `envOr("`+name+`"`)
	})
	return found
}

// source passes each source file of the repository, without tests, to each.
func source(t *testing.T, each func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "dist" || d.Name() == "bench"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			each(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
