package analysis

import (
	"errors"
	"path"
	"strings"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/format/pdf"
	"github.com/longbox/longbox/shared/format/rar"
	"github.com/longbox/longbox/shared/format/sevenz"
	"github.com/longbox/longbox/shared/format/tarball"
)

// container is a recognized file: an archive, or a PDF document.
type container struct {
	archive.Directory
	format   string // cbz, cbr, cb7 or cbt
	document *pdf.Document
}

// open detects the type of the file. Its bytes decide; the extension only says where to look first: at the end, where
// ZIP has its directory, or at the beginning, where the other formats have their signature.
func (s *source) open(key string) (*container, error) {
	atEnd := naming.Format(key) == "cbz" || naming.Format(key) == "epub"
	if !atEnd {
		c, err := s.openMarked()
		if c != nil || err != nil {
			return c, err
		}
	}
	dir, err := archive.ReadDirectory(s.tail, s.object.Size, s.reader.Limits, func(off, n int64) ([]byte, error) { return s.at.Bytes(off, n) })
	if err == nil {
		return &container{Directory: *dir, format: "cbz"}, nil
	}
	if atEnd && errors.As(err, new(*archive.Error)) {
		c, marked := s.openMarked()
		if c != nil || marked != nil {
			return c, marked
		}
	}
	return nil, err
}

// openMarked opens a file by its signature; nil for ZIP and unknown ones.
func (s *source) openMarked() (*container, error) {
	head, err := s.head()
	if err != nil {
		return nil, err
	}
	var dir *archive.Directory
	format := ""
	switch {
	case mediatype.Detect(head) == mediatype.RAR:
		format = "cbr"
		dir, err = rar.ReadDirectory(s.at, s.object.Size, s.reader.Limits)
	case sevenz.Is(head):
		format = "cb7"
		dir, err = sevenz.ReadDirectory(s.at, s.object.Size, s.reader.Limits)
	case tarball.Is(head):
		format = "cbt"
		dir, err = tarball.ReadDirectory(s.at, s.object.Size, s.reader.Limits)
	case pdf.Is(head):
		s.at.Window(documentWindow, documentWindow/4)
		d, err := pdf.Open(s.ctx, s.at, s.object.Size, s.reader.Documents)
		return &container{document: d}, err
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &container{Directory: *dir, format: format}, nil
}

// isEPUB reports whether an archive is an EPUB, by content or by name.
func (c *container) isEPUB(key string) bool {
	if c.format != "cbz" {
		return false
	}
	mark, container := strings.EqualFold(path.Ext(key), ".epub"), false
	for _, e := range c.Entries {
		switch e.Name {
		case "mimetype":
			mark = true
		case "META-INF/container.xml":
			container = true
		}
	}
	return mark && container || strings.EqualFold(path.Ext(key), ".epub")
}
