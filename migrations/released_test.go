package migrations_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"io/fs"
	"strings"
	"testing"

	"github.com/longbox/longbox/migrations"
)

//go:embed released.sum
var released []byte

// A database that applied a released file never sees what is written into it later, and lacks it for good.
func TestReleasedFilesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	sums := map[string]string{}
	last := ""
	for lines := bufio.NewScanner(bytes.NewReader(released)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || name <= last {
			t.Fatalf("released.sum: %q is no line of sha256sum, or not in order", lines.Text())
		}
		sums[name], last = sum, name
	}
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		switch was, ok := sums[name]; {
		case !ok && name < last:
			t.Errorf("%s comes before %s, which is released: databases have passed its number", name, last)
		case ok && was != hex.EncodeToString(sum[:]):
			t.Errorf("%s is released and was changed: undo that, and put the change into a new file", name)
		}
		delete(sums, name)
	}
	for name := range sums {
		t.Errorf("%s is released and is gone", name)
	}
}
