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
	tag    = regexp.MustCompile(`env:"([A-Z][A-Z0-9_]*)[^"]*"(?:\s+envDefault:"([^"]*)")?`)
	direct = regexp.MustCompile(`os\.(?:Getenv|LookupEnv)\("([A-Z][A-Z0-9_]*)"\)`)
	row    = regexp.MustCompile("(?m)^\\| `([A-Z][A-Z0-9_]*)` \\|([^|]*)\\|")
)

type variable struct{ name, otherwise, file string }

// preset are variables that the shell or Lambda sets and nobody chooses.
var preset = []string{"PATH", "AWS_LAMBDA_RUNTIME_API"}

// Every variable that the code reads has a row in operator.md, with the default of its env tag if it has one. Every row
// is such a variable.
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
		if !known[name] {
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
		for _, m := range direct.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(preset, m[1]) {
				out = append(out, variable{m[1], "", path})
			}
		}
	})
	return out
}

// source passes each source file of the programs to each: without tests, their kit and the benchmarks.
func source(t *testing.T, each func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"dist", "bench", "testkit"}, d.Name())):
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
