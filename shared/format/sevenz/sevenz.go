// Package sevenz reads 7z archives in an object store: the header from the end, the content folder by folder. A stored
// entry is a range of the object. Any other entry needs everything before it in its folder (archive.SevenZip, Walk).
//
// The package parses the header itself, because existing packages allocate memory by counts that a header of forty
// bytes may claim. Folders are chains of plain compressors. Filters for programs, which images do not need, are
// refused.
package sevenz

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/longbox/longbox/shared/format/archive"
)

const (
	signature  = "7z\xbc\xaf\x27\x1c"
	startBytes = 32

	// maxNesting limits packed headers within packed headers.
	maxNesting = 4
)

var le = binary.LittleEndian

var (
	errDamaged   = archive.Errorf(archive.Corrupt, "the directory of the 7z archive is damaged")
	errEncrypted = archive.Errorf(archive.Encrypted, "the archive's directory is encrypted: remove the archive's password")
)

// ReadDirectory reads the header of an archive of size bytes. Problems of the archive are an *archive.Error; errors of
// r are passed on.
func ReadDirectory(r io.ReaderAt, size int64, lim archive.Limits) (*archive.Directory, error) {
	h, err := read(r, size, lim.WithDefaults())
	if err != nil {
		return nil, err
	}
	return &archive.Directory{Entries: h.entries, Size: size}, nil
}

// header is a parsed header.
type header struct {
	folders []folder
	entries []archive.Entry
	streams []stream // of all folders, in order
}

// stream is the part of one file in a folder.
type stream struct {
	folder int
	size   int64
	crc    uint32
}

func read(r io.ReaderAt, size int64, lim archive.Limits) (*header, error) {
	if size < startBytes {
		return nil, archive.Errorf(archive.Truncated, "the 7z archive is cut short; get a complete copy")
	}
	start := make([]byte, startBytes)
	if err := readAt(r, start, 0); err != nil {
		return nil, err
	}
	if string(start[:6]) != signature {
		return nil, archive.Errorf(archive.NotArchive, "the file is not a 7z archive")
	}
	if crc32.ChecksumIEEE(start[12:]) != le.Uint32(start[8:]) {
		return nil, errDamaged
	}
	offset, n := le.Uint64(start[12:]), le.Uint64(start[20:])
	switch {
	case n == 0:
		return &header{}, nil
	case offset > uint64(size) || n > uint64(size) || startBytes+offset+n > uint64(size):
		return nil, archive.Errorf(archive.Truncated, "the end of the 7z archive, where its directory is, is missing; get a complete copy")
	case n > uint64(lim.DirectoryBytes):
		return nil, archive.Errorf(archive.TooLarge, "the archive's directory has %d bytes, the limit is %d", n, lim.DirectoryBytes)
	}
	raw := make([]byte, n)
	if err := readAt(r, raw, startBytes+int64(offset)); err != nil {
		return nil, err
	}
	if crc32.ChecksumIEEE(raw) != le.Uint32(start[28:]) {
		return nil, errDamaged
	}
	for range maxNesting {
		c := &cursor{b: raw}
		switch c.byte() {
		case idHeader:
			return parse(c, size, lim)
		case idEncodedHeader:
			var err error
			if raw, err = unpackHeader(r, c, size, lim); err != nil {
				return nil, err
			}
		default:
			return nil, errDamaged
		}
	}
	return nil, errDamaged
}

// unpackHeader decompresses a packed header.
func unpackHeader(r io.ReaderAt, c *cursor, size int64, lim archive.Limits) ([]byte, error) {
	s, err := c.streams(size, lim)
	if err != nil {
		return nil, err
	}
	if len(s.folders) != 1 {
		return nil, errDamaged
	}
	f := s.folders[0]
	if f.encrypted() {
		return nil, errEncrypted
	}
	n := f.size()
	if n > lim.DirectoryBytes {
		return nil, archive.Errorf(archive.TooLarge, "the archive's directory has %d bytes, the limit is %d", n, lim.DirectoryBytes)
	}
	if err := f.check(lim); err != nil {
		return nil, err
	}
	packed := &archive.Source{R: io.NewSectionReader(r, f.offset, f.packed)}
	content, err := f.open(packed, lim)
	if err != nil {
		return nil, why(packed, err)
	}
	raw := make([]byte, n)
	if _, err := io.ReadFull(content, raw); err != nil {
		return nil, why(packed, err)
	}
	if f.hasCRC && crc32.ChecksumIEEE(raw) != f.crc {
		return nil, errDamaged
	}
	return raw, nil
}

func readAt(r io.ReaderAt, b []byte, off int64) error {
	if _, err := r.ReadAt(b, off); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the archive's directory: %w", err)
	}
	return nil
}

// Walk decompresses the folders with the wanted entries (by their number, as in Entry.Offset). open returns the range
// of a folder. Walk passes the entries to each in their order, until each returns an error or none is left.
func Walk(r io.ReaderAt, size int64, lim archive.Limits, open func(off, n int64) (io.ReadCloser, error),
	wanted map[int64]archive.Entry, each func(number int64, content io.Reader) error) error {
	lim = lim.WithDefaults()
	h, err := read(r, size, lim)
	if err != nil {
		return err
	}
	last := map[int]int64{} // last wanted number of each folder
	for n := range wanted {
		if n < 0 || n >= int64(len(h.streams)) {
			return archive.Errorf(archive.Corrupt, "the archive has no entry number %d", n)
		}
		f := h.streams[n].folder
		last[f] = max(last[f], n)
	}
	for n := 0; n < len(h.streams); n++ {
		f := h.streams[n].folder
		end, ok := last[f]
		if !ok {
			continue
		}
		if err := h.walkFolder(int64(n), end, lim, open, wanted, each); err != nil {
			return err
		}
		for n+1 < len(h.streams) && h.streams[n+1].folder == f {
			n++
		}
	}
	return nil
}

func (h *header) walkFolder(from, to int64, lim archive.Limits, open func(off, n int64) (io.ReadCloser, error),
	wanted map[int64]archive.Entry, each func(number int64, content io.Reader) error) error {
	f := h.folders[h.streams[from].folder]
	if err := f.check(lim); err != nil {
		return err
	}
	body, err := open(f.offset, f.packed)
	if err != nil {
		return err
	}
	defer body.Close()
	packed := &archive.Source{R: body}
	content, err := f.open(packed, lim)
	if err != nil {
		return why(packed, err)
	}
	for n := from; n <= to; n++ {
		part := &io.LimitedReader{R: content, N: h.streams[n].size}
		if e, ok := wanted[n]; ok {
			if err := each(n, archive.Verify(e, part)); err != nil {
				return cmp.Or(packed.Failed, err)
			}
		}
		if _, err := io.Copy(io.Discard, part); err != nil {
			return why(packed, err)
		}
		if part.N > 0 {
			return why(packed, io.ErrUnexpectedEOF)
		}
	}
	return nil
}

// why returns the cause of a decompression error.
func why(packed *archive.Source, err error) error {
	var known *archive.Error
	switch {
	case packed.Failed != nil:
		return packed.Failed
	case errors.As(err, &known):
		return err
	}
	return &archive.Error{Kind: archive.Corrupt, Msg: "the 7z archive is damaged: its content cannot be decompressed", Err: err}
}

// Is reports whether a file that starts with head is a 7z archive.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte(signature)) }
