package library

import (
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/format/naming"
)

// Selection returns a function that reports whether a key, relative to the library's root, is a book, and the format by
// its extension. It rejects hidden files, formats that are not allowed (an empty list allows all) and excluded keys.
func Selection(formats []string, patterns string) (func(key string) (format string, ok bool), error) {
	excluded, err := Excluded(patterns)
	if err != nil {
		return nil, err
	}
	return func(key string) (string, bool) {
		format := naming.Format(key)
		if format == "" || Hidden(key) {
			return "", false
		}
		if len(formats) > 0 && !slices.ContainsFunc(formats, func(f string) bool { return strings.EqualFold(f, format) }) {
			return "", false
		}
		return format, !excluded(key)
	}, nil
}

// MayHold tells whether a file in a folder, relative to the library's root and with its slash, would be a book;
// selected is the Selection with these formats.
func MayHold(allowed []string, selected func(key string) (format string, ok bool), folder string) bool {
	if len(allowed) == 0 {
		allowed = formats
	}
	return slices.ContainsFunc(allowed, func(format string) bool {
		_, ok := selected(folder + "a." + strings.ToLower(format))
		return ok
	})
}

// systemFolders are of operating systems and storage devices: for what was deleted, previews, recovered blocks.
var systemFolders = []string{"__MACOSX/", "$RECYCLE.BIN/", "$Recycle.Bin/", "System Volume Information/", "lost+found/", "@eaDir/", "#recycle/", "#snapshot/", "@Recycle/", "@Recently-Snapshot/"}

// Hidden reports whether a key is a hidden file or lies in a hidden or system folder.
func Hidden(key string) bool {
	if strings.HasPrefix(key, ".") || strings.Contains(key, "/.") {
		return true
	}
	for _, folder := range systemFolders {
		if i := strings.Index(key, folder); i == 0 || i > 0 && strings.Contains(key, "/"+folder) {
			return true
		}
	}
	return false
}
