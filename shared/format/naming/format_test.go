package naming

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The extensions in the operator's guide are the supported ones.
func TestFormat(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile("extension \\(`(.+?)`\\)").FindSubmatch(guide)
	if list == nil {
		t.Fatal("the guide has no list of extensions")
	}
	for _, extension := range strings.Fields(string(list[1])) {
		if Format("a/b"+extension) == "" || Format("a/b"+strings.ToUpper(extension)) == "" {
			t.Errorf("%s is no book", extension)
		}
	}
	for _, other := range []string{"a.gz", "a.txt", "cbz", "a.cbz/", ""} {
		if f := Format(other); f != "" {
			t.Errorf("%q is a %s", other, f)
		}
	}
}
