package pdfdraw

import (
	"io/fs"
	"os"
	"strings"
)

// fontPath is where PDFium looks for fonts.
const fontPath = "usr/share/fonts"

// fonts is the file system of a sandbox: a folder of fonts at fontPath. The folders above have the same content: PDFium
// only checks that they exist.
type fonts struct{ folder fs.FS }

func fontsIn(folder string) fonts { return fonts{os.DirFS(folder)} }

// Open opens a font or a folder of fonts.
func (f fonts) Open(name string) (fs.File, error) {
	if below, ok := strings.CutPrefix(name, fontPath+"/"); ok {
		return f.folder.Open(below)
	}
	if name == "." || name == fontPath || strings.HasPrefix(fontPath, name+"/") {
		return f.folder.Open(".")
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
