package naming

import (
	"path"
	"strings"
)

// Format returns the book format for a file name's extension, or "" if it is no book.
func Format(key string) string {
	switch strings.ToLower(path.Ext(key)) {
	case ".cbz", ".zip":
		return "cbz"
	case ".epub":
		return "epub"
	case ".cbr", ".rar":
		return "cbr"
	case ".cb7", ".7z":
		return "cb7"
	case ".cbt", ".tar":
		return "cbt"
	case ".pdf":
		return "pdf"
	}
	return ""
}
