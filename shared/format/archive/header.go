package archive

import (
	"bytes"
	"hash/crc32"
	"math"
)

// parser reads the headers of a directory (APPNOTE 4.3.12).
type parser struct {
	raw   []byte // the directory
	start int64  // its offset in the file
	shift int64  // bytes before the archive, which its offsets do not count
	size  int64  // of the file
	lim   Limits
	text  string // the directory as a string: plain names are slices of it
}

const (
	flagEncrypted = 1 << 0
	flagEndMarked = 1 << 1 // LZMA only
	flagStrong    = 1 << 6
	flagUTF8      = 1 << 11
	flagMasked    = 1 << 13
)

func (p *parser) parse(count int) ([]Entry, error) {
	p.text = string(p.raw)
	entries := make([]Entry, 0, count)
	var old legacyNames
	at := 0
	for at < len(p.raw) && !bytes.HasPrefix(p.raw[at:], signature) {
		if len(entries) == count {
			return nil, Errorf(Corrupt, "the archive states %d entries, its directory holds more", count)
		}
		if len(p.raw)-at < headerLen || !bytes.HasPrefix(p.raw[at:], headerSig) {
			return nil, Errorf(Corrupt, "the archive's directory is damaged after %d of %d entries", len(entries), count)
		}
		h := p.raw[at : at+headerLen]
		name := at + headerLen
		extra := name + int(le16(h[28:]))
		end := extra + int(le16(h[30:]))
		next := end + int(le16(h[32:]))
		if next > len(p.raw) {
			return nil, Errorf(Corrupt, "the archive's directory is damaged after %d of %d entries", len(entries), count)
		}
		if extra-name > p.lim.NameBytes {
			return nil, tooLarge("bytes in a name in the archive", extra-name, p.lim.NameBytes)
		}
		e, err := p.header(h, p.raw[extra:end])
		if err != nil {
			return nil, err
		}
		raw := p.text[name:extra]
		if unicodeName := unicodePath(raw, p.raw[extra:end]); unicodeName != "" {
			raw = unicodeName
		} else if le16(h[8:])&flagUTF8 == 0 {
			old.add(len(entries), raw)
		}
		e.Name, e.Directory = clean(raw)
		entries = append(entries, e)
		at = next
	}
	if len(entries) != count {
		return nil, Errorf(Corrupt, "the archive states %d entries, its directory holds %d", count, len(entries))
	}
	old.decode(entries)
	if err := CheckSizes(entries, p.size, p.lim); err != nil {
		return nil, err
	}
	return entries, extents(entries, p.start)
}

// header reads the fixed part of one header, and its zip64 sizes.
func (p *parser) header(h, extra []byte) (Entry, error) {
	flags := le16(h[8:])
	if flags&flagMasked != 0 {
		return Entry{}, Errorf(Encrypted, "the archive's directory is encrypted: remove the password")
	}
	compressed, size, offset := uint64(le32(h[20:])), uint64(le32(h[24:])), uint64(le32(h[42:]))
	disk := uint32(le16(h[34:]))
	if err := zip64(extra, &size, &compressed, &offset, &disk); err != nil {
		return Entry{}, err
	}
	if disk != 0 {
		return Entry{}, Errorf(Unsupported, "the archive is split into several files: join them into one")
	}
	if offset > uint64(p.start-p.shift) || compressed > uint64(p.start) || size > math.MaxInt64 {
		return Entry{}, Errorf(Corrupt, "an entry of the archive lies outside the file (offset %d, %d bytes)", offset, compressed)
	}
	e := Entry{
		Offset:         int64(offset) + p.shift,
		CompressedSize: int64(compressed),
		Size:           int64(size),
		Method:         le16(h[10:]),
		CRC32:          le32(h[16:]),
		Encrypted:      flags&(flagEncrypted|flagStrong) != 0,
	}
	if e.Method >= PDFPage {
		e.Method = 0xfff0 // ZIP does not have these methods: they are ours
	}
	const unix, macOS = 3, 19
	if creator := h[5]; creator == unix || creator == macOS {
		e.Symlink = le32(h[38:])>>28 == 0xa
	}
	return e, nil
}

// CheckSizes checks the sizes of all entries against the limits, before anything is unpacked. size is that of the
// archive.
func CheckSizes(entries []Entry, size int64, lim Limits) error {
	lim = lim.WithDefaults()
	var total int64
	for _, e := range entries {
		if e.Method == Stored && !e.Encrypted && e.Size != e.CompressedSize {
			return Errorf(Corrupt, "%s: stored without compression, but the sizes %d and %d differ", e.Name, e.CompressedSize, e.Size)
		}
		if err := e.Fits(lim); err != nil && isPage(e) {
			return err
		}
		if e.Size < 0 || e.Size > lim.TotalBytes-total {
			return Errorf(TooLarge, "the unpacked archive is larger than the limit of %d bytes", lim.TotalBytes)
		}
		total += e.Size
	}
	if total > ratioFloor && total/max(size, 1) > lim.Ratio {
		return tooLarge("compression ratio of the archive", total/max(size, 1), lim.Ratio)
	}
	return nil
}

// field returns the extra field with an id, or nil (APPNOTE 4.5.1).
func field(extra []byte, id uint16) []byte {
	for len(extra) >= 4 {
		n := int(le16(extra[2:]))
		if n > len(extra)-4 {
			return nil
		}
		if le16(extra) == id {
			return extra[4 : 4+n]
		}
		extra = extra[4+n:]
	}
	return nil
}

// zip64 replaces the values that do not fit into 32 bits (APPNOTE 4.5.3): only those are in the field, in this order.
func zip64(extra []byte, size, compressed, offset *uint64, disk *uint32) error {
	wanted := *size == math.MaxUint32 || *compressed == math.MaxUint32 || *offset == math.MaxUint32
	if !wanted && *disk != 0xffff {
		return nil
	}
	b := field(extra, 0x0001)
	for _, v := range []*uint64{size, compressed, offset} {
		if *v != math.MaxUint32 {
			continue
		}
		if len(b) < 8 {
			return Errorf(Corrupt, "an entry of the archive lacks its 64-bit sizes")
		}
		*v, b = le64(b), b[8:]
	}
	if *disk == 0xffff && len(b) >= 4 {
		*disk = le32(b)
	}
	return nil
}

// unicodePath returns the UTF-8 name in the Info-ZIP field 0x7075, if its checksum matches the name that it replaces.
func unicodePath(name string, extra []byte) string {
	b := field(extra, 0x7075)
	if len(b) < 6 || b[0] != 1 || le32(b[1:]) != crc32.ChecksumIEEE([]byte(name)) {
		return ""
	}
	return string(b[5:])
}
