package upload

import (
	"fmt"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/format/naming"
)

// Limits of a path: an S3 key has at most 1,024 bytes, a name in most file systems 255.
const (
	maxKey  = 1024
	maxPath = 900
	maxName = 255
)

// types are the media types allowed per extension; the first is the default.
var types = map[string][]string{
	"cbz":  {"application/vnd.comicbook+zip", "application/zip", "application/x-cbz", "application/x-zip-compressed"},
	"epub": {"application/epub+zip"},
	"cbr":  {"application/vnd.comicbook-rar", "application/x-cbr", "application/x-rar-compressed", "application/vnd.rar"},
	"cb7":  {"application/x-cb7", "application/x-7z-compressed"},
	"cbt":  {"application/x-cbt", "application/x-tar"},
	"pdf":  {"application/pdf"},
	"xml":  {"application/xml", "text/xml"},
	"opf":  {"application/oebps-package+xml", "application/xml", "text/xml"},
	"json": {"application/json"},
}

// comicInfo may be beside books, where other programs put it; Longbox reads only the one inside a book.
const comicInfo = "comicinfo.xml"

// beside reports whether a file may be beside books, and its allowed media types; sidecar is the library's sidecar
// test.
func beside(p string, sidecar func(key string) (kind, about string)) (mediaTypes []string, ok bool) {
	switch kind, _ := sidecar(p); {
	case kind == library.PackageSidecar:
		return types["opf"], true
	case kind == library.SeriesSidecar:
		return types["json"], true
	case kind == library.CoverSidecar:
		return []string{mediatype.ByExtension(path.Ext(p))}, true
	}
	return types["xml"], strings.EqualFold(path.Base(p), comicInfo)
}

// checked is a validated file.
type checked struct {
	path, mediaType string
	size            int64
	book            bool
}

// checkPath returns what is wrong with a path, or "". It corrects nothing: a path that other programs may interpret
// differently is rejected.
func checkPath(p string) string {
	switch {
	case p == "":
		return "is required"
	case len(p) > maxPath:
		return fmt.Sprintf("has %d bytes; the limit is %d", len(p), maxPath)
	case !utf8.ValidString(p) || strings.ContainsRune(p, utf8.RuneError):
		return "is not valid UTF-8"
	case strings.ContainsFunc(p, unicode.IsControl):
		return "must not contain control characters"
	case strings.Contains(p, `\`):
		return `must not contain a backslash; separate folders with "/"`
	case strings.HasPrefix(p, "/"):
		return "must be relative to the library's folder"
	case len(p) > 1 && p[1] == ':':
		return "must not begin with a drive letter"
	}
	for name := range strings.SplitSeq(p, "/") {
		switch {
		case name == "":
			return "has an empty folder or file name"
		case name == "." || name == "..":
			return `must not contain "." or ".." as a name`
		case len(name) > maxName:
			return fmt.Sprintf("has a name of %d bytes; the limit is %d", len(name), maxName)
		case strings.TrimSpace(name) != name:
			return "has a name that begins or ends with a space"
		}
	}
	if library.Hidden(p) {
		return "is hidden: a name begins with a dot, or a folder is a system folder such as __MACOSX or lost+found. Scans skip hidden files"
	}
	return ""
}

// check validates a file for this library. It returns the validated file, or the invalid field and the reason.
func (f File) check(c Config, prefix string, selected func(key string) (string, bool), sidecar func(key string) (kind, about string)) (out checked, member, reason string) {
	if reason := checkPath(f.Path); reason != "" {
		return out, "path", reason
	}
	if n := len(prefix) + len(f.Path); n > maxKey {
		return out, "path", fmt.Sprintf("has %d bytes with the library's folder; the limit is %d", n, maxKey)
	}
	limit := c.MaxBytes
	kind, book := selected(f.Path)
	allowed := types[kind]
	if !book {
		side, ok := beside(f.Path, sidecar)
		switch known, _ := library.Sidecar(f.Path); {
		case ok:
			allowed, limit = side, min(limit, maxSideFile)
		case naming.Format(f.Path) == "" && known == "":
			return out, "path", "is not a supported book: the name must end in .cbz, .zip, .epub or another book format (beside books, cover.jpg, series.json, " +
				"metadata.opf and ComicInfo.xml are allowed, too)"
		default:
			return out, "path", "is excluded by the library's allowedFormats or excludedPatterns"
		}
	}
	if f.Size < 1 || f.Size > limit {
		return out, "size", fmt.Sprintf("must be 1 to %d bytes, is %d", limit, f.Size)
	}
	mediaType := allowed[0]
	if f.ContentType != "" {
		parsed, params, err := mime.ParseMediaType(f.ContentType)
		if err != nil || len(params) > 0 || parsed != "application/octet-stream" && !slices.Contains(allowed, parsed) {
			return out, "contentType", "must be one of " + strings.Join(allowed, ", ") + " or application/octet-stream, without parameters"
		}
		mediaType = parsed
	}
	return checked{path: f.Path, mediaType: mediaType, size: f.Size, book: book}, "", ""
}
