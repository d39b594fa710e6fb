package epub

import (
	"net/url"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/longbox/longbox/shared/format/archive"
)

// Names finds the entries of an archive by references in an EPUB.
type Names struct {
	exact map[string]int // the first entry with a name
	lower map[string]int // the same in lower case
}

// NamesOf returns the names of a directory's entries. Some programs store percent-encoded names: "a%20b.xhtml" is also
// found as "a b.xhtml", unless there is an entry with that name.
func NamesOf(dir *archive.Directory) Names {
	n := Names{exact: make(map[string]int, len(dir.Entries)), lower: make(map[string]int, len(dir.Entries))}
	for i, e := range dir.Entries {
		if !e.Directory {
			n.add(e.Name, i)
		}
	}
	for i, e := range dir.Entries {
		if e.Directory || !strings.Contains(e.Name, "%") {
			continue
		}
		if plain, err := url.PathUnescape(e.Name); err == nil {
			n.add(norm.NFC.String(plain), i)
		}
	}
	return n
}

func (n Names) add(name string, i int) {
	if _, taken := n.exact[name]; !taken {
		n.exact[name] = i
	}
	if low := strings.ToLower(name); n.lower[low] == 0 {
		n.lower[low] = i + 1
	}
}

// Find returns the index of the entry with a name, ignoring case, or -1.
func (n Names) Find(name string) int {
	if name == "" {
		return -1
	}
	name = norm.NFC.String(name)
	if i, ok := n.exact[name]; ok {
		return i
	}
	return n.lower[strings.ToLower(name)] - 1
}
