package scanner

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/testkit"
)

// The time of one book may be over while it reads the package document that is also beside others.
func TestPackageDocumentOutlastsABook(t *testing.T) {
	t.Parallel()
	s3 := testkit.StartS3(t, "books")
	opf := []byte(`<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
		<dc:title>T</dc:title></metadata></package>`)
	testkit.WriteFile(t, filepath.Join(s3.Dir, "books"), "A/metadata.opf", opf)
	info, err := os.Stat(filepath.Join(s3.Dir, "books", "A/metadata.opf"))
	if err != nil {
		t.Fatal(err)
	}
	p := &packageDocument{packageRow: packageRow{Key: "A/metadata.opf", Size: int64(len(opf)), Modified: info.ModTime(), Pending: true}}
	reader := &content.Reader{Store: s3.Store}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.read(over, reader, "books", ""); err == nil {
		t.Error("it was read without time")
	}
	for range 2 {
		if err := p.read(t.Context(), reader, "books", ""); err != nil || p.says == nil || p.Problem != nil || len(p.Document) == 0 {
			t.Errorf("%+v, %v", p.says, err)
		}
	}
}
