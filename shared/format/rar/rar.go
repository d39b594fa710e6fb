// Package rar reads the headers of RAR archives (versions 4 and 5) in an object store, block by block, skipping the
// content. The decompression package does not report the location of entries.
//
// A stored entry is a range of the object. An entry that is compressed on its own is read from its block (archive.RAR4,
// RAR5). An entry of a solid archive needs everything before it (archive.SolidRAR, Walk).
package rar

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/longbox/longbox/shared/format/archive"
)

const (
	signature4 = "Rar!\x1a\x07\x00"
	signature5 = "Rar!\x1a\x07\x01\x00"

	// maxHeader limits a block's header. It is many times the size of a header with a name of 1,000 bytes and times.
	maxHeader = 64 << 10
)

// reader walks the blocks of one archive.
type reader struct {
	r    io.ReaderAt
	size int64
	lim  archive.Limits
	at   int64

	copies map[int64][]byte // copies of headers in a version 5 archive, by offset

	entries  []archive.Entry
	names    []string
	contents map[string]int   // entries whose content others may share, by name
	hashes   map[place][]byte // BLAKE2 of entries without a checksum (version 5)
	files    int64            // file blocks so far: the numbers for Walk
}

// ReadDirectory reads the headers of an archive of size bytes. Problems of the archive are an *archive.Error; errors of
// r are passed on.
func ReadDirectory(r io.ReaderAt, size int64, lim archive.Limits) (*archive.Directory, error) {
	d := &reader{r: r, size: size, lim: lim.WithDefaults(), contents: map[string]int{}, hashes: map[place][]byte{}}
	head, err := d.read(0, len(signature5))
	if err != nil {
		return nil, err
	}
	switch {
	case string(head) == signature5:
		d.at = int64(len(signature5))
		err = d.walk5()
	case string(head[:len(signature4)]) == signature4:
		d.at = int64(len(signature4))
		err = d.walk4()
	default:
		err = archive.Errorf(archive.NotArchive, "the file is not a RAR archive")
	}
	if err != nil {
		return nil, err
	}
	archive.SetNames(d.entries, d.names)
	if err := archive.CheckSizes(d.entries, size, d.lim); err != nil {
		return nil, err
	}
	return &archive.Directory{Entries: d.entries, Size: size, Fingerprint: d.fingerprint()}, nil
}

// place identifies an entry: the offset of one in a solid archive is its number.
type place struct {
	method uint16
	offset int64
}

func placeOf(e archive.Entry) place { return place{e.Method, e.Offset} }

// fingerprint is archive.Fingerprint with hashes, for pages without checksums. It is empty if no page has a hash.
func (d *reader) fingerprint() string {
	found, print := false, sha256.New()
	for _, p := range archive.Pages(d.entries) {
		hash := d.hashes[placeOf(p)]
		found = found || hash != nil
		fmt.Fprintf(print, "%d %08x %x\n", p.Size, p.CRC32, hash)
	}
	if !found {
		return ""
	}
	return hex.EncodeToString(print.Sum(nil))
}

var (
	errEncrypted = archive.Errorf(archive.Encrypted, "the archive's directory is encrypted: remove the archive's password")
	errVolume    = archive.Errorf(archive.Unsupported, "the file is one part of a RAR archive in several files: pack them into one")
)

func (d *reader) damaged() error {
	return archive.Errorf(archive.Corrupt, "the RAR archive is damaged after %d entries (byte %d)", len(d.entries), d.at)
}

func (d *reader) cutShort() error {
	return archive.Errorf(archive.Truncated, "the RAR archive is cut short after %d entries; get a complete copy", len(d.entries))
}

// read returns n bytes from off, or Truncated if the file ends before.
func (d *reader) read(off int64, n int) ([]byte, error) {
	if off < 0 || off+int64(n) > d.size {
		return nil, d.cutShort()
	}
	b := make([]byte, n)
	if _, err := d.r.ReadAt(b, off); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the archive's headers: %w", err)
	}
	return b, nil
}

// add adds an entry. header is the size of its block's header, data that of its data.
func (d *reader) add(e archive.Entry, name string, own uint16, header, data int64, stored, solid bool) error {
	if len(d.entries) == d.lim.Entries {
		return archive.Errorf(archive.TooLarge, "the archive has more entries than the limit of %d", d.lim.Entries)
	}
	if len(name) > d.lim.NameBytes {
		return archive.Errorf(archive.TooLarge, "a name in the archive has %d bytes, the limit is %d", len(name), d.lim.NameBytes)
	}
	if d.at+header+data > d.size {
		return archive.Errorf(archive.Truncated, "the RAR archive ends inside entry %d; get a complete copy", len(d.entries)+1)
	}
	e.CompressedSize = data
	switch {
	case stored || e.Directory || e.Symlink:
		e.Method, e.Offset, e.Length = archive.Bare, d.at+header, data
		if stored && !e.Encrypted && !e.Directory && !e.Symlink && e.Size != data {
			return archive.Errorf(archive.Corrupt, "entry %d of the archive is stored uncompressed, but its sizes %d and %d differ", len(d.entries)+1, data, e.Size)
		}
	case solid:
		e.Method, e.Offset, e.Length = archive.SolidRAR, d.files, 0
	default:
		e.Method, e.Offset, e.Length = own, d.at, header+data
	}
	d.files++
	if !e.Symlink && !e.Directory {
		d.contents[name] = len(d.entries)
	}
	d.entries, d.names = append(d.entries, e), append(d.names, name)
	return nil
}

var le = binary.LittleEndian

func checksum16(header []byte) uint16 { return uint16(crc32.ChecksumIEEE(header)) }
