package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/format/naming"
)

// Pages returns the image entries in reading order: natural order, folder by folder. Images are recognised by their
// extension. System files (dotfiles, Thumbs.db, folders such as __MACOSX), links and folders are not pages. Encrypted
// images and images with unsupported methods are; see CheckPages.
func Pages(entries []Entry) []Entry {
	var pages []Entry
	for _, e := range entries {
		if isPage(e) {
			pages = append(pages, e)
		}
	}
	slices.SortStableFunc(pages, func(a, b Entry) int { return naming.ComparePath(a.Name, b.Name) })
	return pages
}

// CheckPages returns the *Error that explains why a book cannot be read: NoPages if it has none, Encrypted or
// Unsupported for the first page that cannot be opened.
func CheckPages(pages []Entry) error {
	if len(pages) == 0 {
		return Errorf(NoPages, "the archive holds no images")
	}
	for _, p := range pages {
		if err := p.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Fingerprint returns the hex SHA-256 of the checksums and sizes of the pages in page order. The same pages in another
// archive, with another compression or another name give the same value. It takes all entries of an archive, or its
// Pages. Without pages all files count, for text books.
func Fingerprint(entries []Entry) string {
	if pages := Pages(entries); len(pages) > 0 {
		return OrderedFingerprint(pages)
	}
	return ContentFingerprint(entries)
}

// ContentFingerprint is Fingerprint over all files instead of the pages. It distinguishes text books that share a cover
// or a publisher's logo.
func ContentFingerprint(entries []Entry) string {
	var files []Entry
	for _, e := range entries {
		if !e.Directory {
			files = append(files, e)
		}
	}
	slices.SortStableFunc(files, func(a, b Entry) int { return naming.ComparePath(a.Name, b.Name) })
	return OrderedFingerprint(files)
}

// OrderedFingerprint is Fingerprint for entries in their order, whatever their names.
func OrderedFingerprint(entries []Entry) string {
	hash := sha256.New()
	var b [12]byte
	for _, e := range entries {
		binary.BigEndian.PutUint32(b[:], e.CRC32)
		binary.BigEndian.PutUint64(b[4:], uint64(e.Size))
		hash.Write(b[:])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// IsImage reports whether a name has the extension of an image that can be a page.
func IsImage(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".avif", ".jxl",
		".heic", ".heif", ".tif", ".tiff", ".bmp":
		return true
	}
	return false
}

func isPage(e Entry) bool {
	if e.Directory || e.Symlink || !IsImage(e.Name) {
		return false
	}
	if path.Base(e.Name)[0] == '.' { // files of macOS and of editors; folders may start with dots, as titles do
		return false
	}
	return !isLeftBehind(e.Name)
}

// leftBehind are folders of copies that macOS and its file servers add to archives, and of thumbnails that a NAS of
// Synology or QNAP adds.
var leftBehind = []string{"__MACOSX", ".AppleDouble", "@eaDir", ".@__thumb"}

func isLeftBehind(name string) bool {
	for folder := range strings.SplitSeq(name, "/") {
		if slices.ContainsFunc(leftBehind, func(f string) bool { return strings.EqualFold(folder, f) }) {
			return true
		}
	}
	return false
}
