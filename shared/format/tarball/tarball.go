// Package tarball reads the headers of tar archives in an object store, skipping the content. Every entry is a range of
// the object, a hard link the range of its target. The format has no checksums, so the fingerprint covers the headers.
package tarball

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/longbox/longbox/shared/format/archive"
)

const block = 512

// Is reports whether a file that starts with head is a tar archive, by the checksum of its first header.
func Is(head []byte) bool {
	if len(head) < block {
		return false
	}
	head = head[:block]
	const at, n = 148, 8
	stated, err := strconv.ParseInt(strings.Trim(string(head[at:at+n]), " \x00"), 8, 32)
	if err != nil || len(bytes.Trim(head, "\x00")) == 0 {
		return false
	}
	sum := int64(n * ' ')
	for i, b := range head {
		if i < at || i >= at+n {
			sum += int64(b)
		}
	}
	return sum == stated
}

// ReadDirectory reads the headers of an archive of size bytes. Problems of the archive are an *archive.Error; errors of
// r are passed on.
func ReadDirectory(r io.ReaderAt, size int64, lim archive.Limits) (*archive.Directory, error) {
	lim = lim.WithDefaults()
	section := io.NewSectionReader(r, 0, size)
	in := &archive.Source{R: section}
	t := tar.NewReader(struct {
		io.Reader
		io.Seeker
	}{in, section}) // allows skipping content without reading it
	var entries []archive.Entry
	var names []string
	files := map[string]int{} // possible targets of hard links
	print := sha256.New()
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if in.Failed != nil {
			return nil, fmt.Errorf("read the archive's headers: %w", in.Failed)
		}
		if err != nil {
			return nil, &archive.Error{Kind: kind(err), Err: err,
				Msg: fmt.Sprintf("the tar archive is damaged or cut short after %d entries; get a complete copy", len(entries))}
		}
		switch {
		case len(entries) == lim.Entries:
			return nil, &archive.Error{Kind: archive.TooLarge, Msg: fmt.Sprintf("the archive has more entries than the limit of %d", lim.Entries)}
		case len(h.Name) > lim.NameBytes:
			return nil, &archive.Error{Kind: archive.TooLarge,
				Msg: fmt.Sprintf("a name in the archive has %d bytes, the limit is %d", len(h.Name), lim.NameBytes)}
		}
		holes := sparse(h)
		if holes && archive.IsImage(h.Name) {
			return nil, &archive.Error{Kind: archive.Unsupported, Msg: h.Name + " is stored as a sparse file: pack the archive again"}
		}
		e := archive.Entry{Method: archive.Bare, Directory: h.Typeflag == tar.TypeDir,
			Symlink: holes || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir}
		if e.Offset, err = section.Seek(0, io.SeekCurrent); err != nil {
			return nil, err
		}
		if !e.Directory && !e.Symlink {
			e.Size, e.CompressedSize, e.Length = h.Size, h.Size, h.Size
			if e.Offset+e.Length > size {
				return nil, &archive.Error{Kind: archive.Truncated, Msg: fmt.Sprintf("the tar archive ends inside %.200s; get a complete copy", h.Name)}
			}
		}
		if target, ok := files[h.Linkname]; ok && h.Typeflag == tar.TypeLink { // the same file under another name
			e = entries[target]
			fmt.Fprintf(print, "%q\n", h.Linkname)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = len(entries)
		}
		fmt.Fprintf(print, "%q %d %d\n", h.Name, h.Size, h.ModTime.UnixNano())
		entries, names = append(entries, e), append(names, h.Name)
	}
	archive.SetNames(entries, names)
	if err := archive.CheckSizes(entries, size, lim); err != nil {
		return nil, err
	}
	return &archive.Directory{Entries: entries, Size: size, Fingerprint: hex.EncodeToString(print.Sum(nil))}, nil
}

// sparse reports whether a file is sparse: such a file is not one range.
func sparse(h *tar.Header) bool {
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

func kind(err error) archive.Kind {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return archive.Truncated
	}
	return archive.Corrupt
}
