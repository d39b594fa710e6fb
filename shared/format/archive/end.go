package archive

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// Sizes of the fixed parts of the records (APPNOTE 4.3).
const (
	localLen     = 30
	headerLen    = 46
	endLen       = 22
	locatorLen   = 20
	end64Len     = 56
	maxVariable  = 2 * 0xffff // name and extra field of a local header
	maxTrailer   = 24         // data descriptor after an entry
	maxEndRecord = 16         // candidate end records that are examined
)

var (
	localSig   = []byte("PK\x03\x04")
	headerSig  = []byte("PK\x01\x02")
	endSig     = []byte("PK\x05\x06")
	signature  = []byte("PK\x05\x05")
	locatorSig = []byte("PK\x06\x07")
	end64Sig   = []byte("PK\x06\x06")
)

var (
	le16 = binary.LittleEndian.Uint16
	le32 = binary.LittleEndian.Uint32
	le64 = binary.LittleEndian.Uint64
)

// endRecord is a candidate for the end of the archive. Offsets are from the start of the file.
type endRecord struct {
	entries int
	size    int64 // of the directory
	start   int64 // of the directory, if it ends at the end record
	claimed int64 // of the directory, as the record states it; less than start after a prefix
	exact   bool  // the comment ends at the end of the file
}

// findEnds returns the candidate end records in the tail, the likeliest first. A comment may contain anything, so a
// signature proves nothing: the true record is the one whose directory parses. Without candidates, the error says what
// is wrong with the likeliest one.
func findEnds(tail []byte, size int64, lim Limits) ([]endRecord, error) {
	var ends []endRecord
	var first error
	base := size - int64(len(tail))
	var places []int // found with a forward search, which is several times faster than a backward one
	for at := 0; ; at += len(endSig) {
		n := bytes.Index(tail[at:], endSig)
		if n < 0 || at+n+endLen > len(tail) {
			break
		}
		at += n
		places = append(places, at)
	}
	for _, at := range slices.Backward(places) {
		if len(ends) == maxEndRecord {
			break
		}
		end, err := parseEnd(tail, at, base, lim)
		if err == nil {
			ends = append(ends, end)
		} else if first == nil && err.Kind != NotArchive {
			first = err
		}
	}
	if len(ends) == 0 {
		return nil, first
	}
	slices.SortStableFunc(ends, func(a, b endRecord) int { return b.rank() - a.rank() })
	return ends, first
}

func (e endRecord) rank() int {
	rank := 0
	if e.exact {
		rank += 2
	}
	if e.entries > 0 {
		rank++
	}
	return rank
}

// parseEnd reads the end record at tail[at:], and the zip64 records before it. Kind NotArchive means that this is no
// end record.
func parseEnd(tail []byte, at int, base int64, lim Limits) (endRecord, *Error) {
	b := tail[at:]
	rest := len(b) - endLen - int(le16(b[20:]))
	if rest < 0 {
		return endRecord{}, Errorf(NotArchive, "the comment runs past the end of the file")
	}
	disk, diskOfDir := uint32(le16(b[4:])), uint32(le16(b[6:]))
	onDisk, entries := uint64(le16(b[8:])), uint64(le16(b[10:]))
	size, offset := uint64(le32(b[12:])), uint64(le32(b[16:]))
	dirEnd := base + int64(at)

	if z, pos := findEnd64(tail, at, base); z != nil {
		dirEnd = base + int64(pos)
		if disk == 0xffff {
			disk = le32(z[16:])
		}
		if diskOfDir == 0xffff {
			diskOfDir = le32(z[20:])
		}
		if onDisk == 0xffff {
			onDisk = le64(z[24:])
		}
		if entries == 0xffff {
			entries = le64(z[32:])
		}
		if size == math.MaxUint32 {
			size = le64(z[40:])
		}
		if offset == math.MaxUint32 {
			offset = le64(z[48:])
		}
	}

	switch {
	case disk != 0 || diskOfDir != 0 || onDisk != entries:
		return endRecord{}, Errorf(Unsupported, "the archive is split into several files: join them into one")
	case entries > uint64(lim.Entries):
		return endRecord{}, tooLarge("entries in the archive", entries, lim.Entries)
	case size > uint64(lim.DirectoryBytes):
		return endRecord{}, tooLarge("bytes in the archive's directory", size, lim.DirectoryBytes)
	case entries == 0 && rest != 0:
		return endRecord{}, Errorf(NotArchive, "an empty archive inside another file")
	case size > uint64(dirEnd) || offset > uint64(dirEnd):
		return endRecord{}, Errorf(Corrupt, "the archive's directory lies outside the file (offset %d, %d bytes)", offset, size)
	case entries*headerLen > size:
		return endRecord{}, Errorf(Corrupt, "the archive states %d entries, its directory of %d bytes cannot hold them", entries, size)
	}
	return endRecord{
		entries: int(entries),
		size:    int64(size),
		start:   dirEnd - int64(size),
		claimed: int64(offset),
		exact:   rest == 0,
	}, nil
}

// findEnd64 returns the zip64 end record for the end record at tail[at:] and its position, or nil. It is where its
// locator says or, after a prefix that the locator ignores, right before the locator.
func findEnd64(tail []byte, at int, base int64) ([]byte, int) {
	locator := at - locatorLen
	if locator < 0 || !bytes.HasPrefix(tail[locator:], locatorSig) {
		return nil, 0
	}
	places := []int{locator - end64Len}
	if stated := le64(tail[locator+8:]); stated <= math.MaxInt64 {
		places = []int{int(int64(stated) - base), locator - end64Len}
	}
	for _, pos := range places {
		if pos < 0 || pos > locator-end64Len || !bytes.HasPrefix(tail[pos:], end64Sig) {
			continue
		}
		if le64(tail[pos+4:])+12 == uint64(locator-pos) {
			return tail[pos:locator], pos
		}
	}
	return nil, 0
}
