package library_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/domain/library"
)

func TestExcluded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns, key string
		want          bool
	}{
		{"", "a/b.cbz", false},
		{"\n  \n", "a/b.cbz", false},
		{"*.tmp", "a/b/c.TMP", true},
		{"*.tmp", "c.tmp", true},
		{"*.tmp", "c.tmp.cbz", false},
		{"  Sample  ", "x/sample/deep/er.cbz", true},
		{"sample", "x/samples/er.cbz", false},
		{"_*", "_hidden/a.cbz", true},
		{"_*", "a/_hidden.cbz", true},
		{"comics/old", "comics/OLD/a.cbz", true},
		{"comics/old", "x/comics/old/a.cbz", false},
		{"/old", "old/a.cbz", true},
		{"old/", "x/old/a.cbz", true},
		{"**/old/*.cbz", "x/y/old/a.cbz", true},
		{"**/old/*.cbz", "x/y/old/z/a.cbz", false},
		{"comics/**", "comics/a/b.cbz", true},
		{"a/*/c", "a/b/c/d/e.cbz", true},
		{"a/*/c", "a/b/x/c/e.cbz", false},
		{"*.{cbr,pdf}", "a/x.PDF", true},
		{"[0-9]*", "a/7 samurai.cbz", true},
		{"zzz\nx?.cbz", "a/x1.cbz", true},
		{"ÉTÉ", "a/été/b.cbz", true},
		{"Pok\u00e9mon*", "Poke\u0301mon v02.cbz", true},
		{"Poke\u0301mon*", "Pok\u00e9mon v01.cbz", true},
	} {
		excluded, err := library.Excluded(c.patterns)
		if err != nil {
			t.Errorf("%q: %v", c.patterns, err)
			continue
		}
		if got := excluded(c.key); got != c.want {
			t.Errorf("%q on %q = %v", c.patterns, c.key, got)
		}
	}
}

// Hidden files are neither books nor sidecars, and package documents count only if requested.
func TestHiddenFiles(t *testing.T) {
	t.Parallel()
	selected, err := library.Selection(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	sidecar, err := library.Sidecars("", false)
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]bool{"a/": true, "a.b/": true, "__MACOSX.x/": true, ".a/": false, "a/.b/": false, "__MACOSX/": false, "a/__MACOSX/b/": false, "a/.": false,
		"lost+found/": false, "a/@eaDir/": false, "#recycle/a/": false, "$RECYCLE.BIN/": false, "$Recycle.Bin/": false, "a/#snapshot/b/": false, "@Recently-Snapshot/": false, "System Volume Information/": false, "@Recycle/": false,
		"a lost+found/": true, "a lost+found/lost+found/": false} {
		if _, ok := selected(folder + "b.cbz"); ok != want {
			t.Errorf("%sb.cbz is a book: %v", folder, ok)
		}
		if kind, _ := sidecar(folder + "cover.jpg"); (kind != "") != want && folder != "a/." {
			t.Errorf("%scover.jpg is a sidecar: %v", folder, !want)
		}
		if kind, _ := sidecar(folder + "b.opf"); kind != "" {
			t.Errorf("%sb.opf is heeded", folder)
		}
	}
}

func TestBadPatterns(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"[a", "{a,b", "a\\", "*", "**", "**/*", "/", strings.Repeat("x", 600), strings.Repeat("{a,b}", 20),
		"{" + strings.Repeat("a,", 40) + "b}", strings.Repeat("x\n", 101)} {
		if _, err := library.Excluded("fine\n" + p); err == nil {
			t.Errorf("%.40q was accepted", p)
		}
	}
}

func TestCleanTitle(t *testing.T) {
	t.Parallel()
	off := false
	rules := []library.TitleRule{
		{Pattern: `\s*\([^)]*\)`, Replacement: ""},
		{Pattern: `^The (.*)`, Replacement: "$1, The"},
		{Pattern: `x`, Replacement: "never", Enabled: &off},
		{Pattern: `(`, Replacement: "never"},
	}
	for in, want := range map[string]string{
		"The Box (2012) (digital)": "Box, The",
		"  Fox  ":                  "Fox",
		"(2012)":                   "(2012)",
		"":                         "",
	} {
		if got := library.CleanTitle(rules, in); got != want {
			t.Errorf("CleanTitle(%q) = %q, want %q", in, got, want)
		}
	}
}

// A chain of replacements that multiply the title must not exhaust the worker's memory.
func TestCleanTitleIsBounded(t *testing.T) {
	t.Parallel()
	var rules []library.TitleRule
	for range 50 {
		rules = append(rules, library.TitleRule{Pattern: ``, Replacement: strings.Repeat("é", 500)})
	}
	got := library.CleanTitle(rules, strings.Repeat("ü", 5000))
	if len(got) > 1024 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

// An error about a pattern that is too long is cut at a character boundary.
func TestLongPatternIsNamed(t *testing.T) {
	t.Parallel()
	_, err := library.Excluded("x" + strings.Repeat("é", 300))
	if want := `"x` + strings.Repeat("é", 39) + `"… has 601 bytes`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func FuzzExcluded(f *testing.F) {
	f.Add("*.{a,b}\n**/x/[a-z]*", "a/b/c.cbz")
	f.Add("{a,{b,c}}*{d,e}/**", "a/b")
	f.Fuzz(func(t *testing.T, patterns, key string) {
		excluded, err := library.Excluded(patterns)
		if err != nil || len(key) > 1024 {
			return
		}
		if excluded(key) && !excluded(key+"/below.cbz") && !strings.HasSuffix(key, "/") {
			t.Errorf("%q leaves out %q but not what is below it", patterns, key)
		}
	})
}

func TestFoldersThatMayHoldBooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allowed  []string
		excluded string
		may      bool
	}{
		{nil, "", true},
		{nil, "*.cbz", true}, // other formats are read, too
		{[]string{"CBZ"}, "*.cbz", false},
		{[]string{"PDF"}, "*.cbz", true},
		{nil, "Old/*", false},
		{nil, "New/*", true},
	} {
		selected, err := library.Selection(c.allowed, c.excluded)
		if err != nil {
			t.Fatal(err)
		}
		if got := library.MayHold(c.allowed, selected, "Old/"); got != c.may {
			t.Errorf("%v without %q: %v, want %v", c.allowed, c.excluded, got, c.may)
		}
	}
}
