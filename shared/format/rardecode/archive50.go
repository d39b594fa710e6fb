package rardecode

import (
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"
	"time"
)

const (
	// block types
	block5Arc  = 1
	block5File = 2
	// block5Service = 3
	block5Encrypt = 4
	block5End     = 5

	// block flags
	block5HasExtra     = 0x0001
	block5HasData      = 0x0002
	block5DataNotFirst = 0x0008
	block5DataNotLast  = 0x0010

	// end block flags
	endArc5NotLast = 0x0001

	// main archive block flags
	arc5MultiVol = 0x0001
	arc5VolNum   = 0x0002
	arc5Solid    = 0x0004

	// file block flags
	file5IsDir          = 0x0001
	file5HasUnixMtime   = 0x0002
	file5HasCRC32       = 0x0004
	file5UnpSizeUnknown = 0x0008

	// file compression flags
	file5CompAlgorithm = 0x0000003F
	file5CompSolid     = 0x00000040
	file5CompMethod    = 0x00000380
	file5CompDictSize  = 0x00007C00
	file5CompDictFract = 0x000F8000
	file5CompV5Compat  = 0x00100000

	// host os
	file5HostOSWindows = 0
	file5HostOSUnix    = 1

	// file header extra types
	file5ExtraCrypt    = 1
	file5ExtraHash     = 2
	file5ExtraTime     = 3
	file5ExtraVersion  = 4
	file5ExtraRedirect = 5
	file5ExtraOwner    = 6

	// precision time flags
	file5ExtraTimeIsUnixTime = 0x01 // is unix time_t
	file5ExtraTimeHasMTime   = 0x02 // has modification time
	file5ExtraTimeHasCTime   = 0x04 // has creation time
	file5ExtraTimeHasATime   = 0x08 // has access time
	file5ExtraTimeHasUnixNS  = 0x10 // unix nanosecond time format

	file5ExtraRedirDir = 0x1 // redirection target is a directory

	file5ExtraUnixOwnerHasUserName  = 0x01 // has unix user name string
	file5ExtraUnixOwnerHasGroupName = 0x02 // has unix group name string
	file5ExtraUnixOwnerHasUserID    = 0x04 // has unix user id
	file5ExtraUnixOwnerHasGroupID   = 0x06 // has unix group id

	maxPathSize = 0x10000

	maxDictSize   = 0x1000000000 // maximum dictionary size 64GB
	maxHeaderSize = 0x200000     // maximum header size: https://www.rarlab.com/technote.htm
)

var (
	ErrPlatformIntSize    = errors.New("rardecode: platform integer size too small")
	ErrDictionaryTooLarge = errors.New("rardecode: decode dictionary too large")
	ErrBadVolumeNumber    = errors.New("rardecode: bad volume number")
	ErrNoArchiveBlock     = errors.New("rardecode: missing archive block")
	ErrBadBlockHeader     = errors.New("rardecode: bad block header")
)

type extra struct {
	ftype uint64  // field type
	data  readBuf // field data
}

type blockHeader50 struct {
	htype    uint64 // block type
	flags    uint64
	data     readBuf // block header data
	extra    []extra // extra fields
	dataSize int64   // size of block data
}

// leHash32 wraps a hash.Hash32 to return the result of Sum in little
// endian format.
type leHash32 struct {
	hash.Hash32
}

func (h leHash32) Sum(b []byte) []byte {
	s := h.Sum32()
	return append(b, byte(s), byte(s>>8), byte(s>>16), byte(s>>24))
}

func newLittleEndianCRC32() hash.Hash {
	return leHash32{crc32.NewIEEE()}
}

// archive50 implements archiveBlockReader for RAR 5 file format archives
type archive50 struct {
	multi bool // archive is multi-volume
	solid bool // is a solid archive
}

func (a *archive50) useOldNaming() bool {
	return false
}

func readWinFiletime(b *readBuf) (time.Time, error) {
	if len(*b) < 8 {
		return time.Time{}, ErrCorruptFileHeader
	}
	// 100-nanosecond intervals since January 1, 1601
	t := b.uint64() - 116444736000000000
	t *= 100
	sec, nsec := bits.Div64(0, t, uint64(time.Second))
	return time.Unix(int64(sec), int64(nsec)), nil
}

func readUnixTime(b *readBuf) (time.Time, error) {
	if len(*b) < 4 {
		return time.Time{}, ErrCorruptFileHeader
	}
	return time.Unix(int64(b.uint32()), 0), nil
}

func readUnixNanoseconds(b *readBuf) (time.Duration, error) {
	if len(*b) < 4 {
		return 0, ErrCorruptFileHeader
	}
	d := time.Duration(b.uint32() & 0x3fffffff)
	if d >= time.Second {
		return 0, ErrCorruptFileHeader
	}
	return d, nil
}

// parseFilePrecisionTimeRecord processes the optional high precision time record from a file header.
func parseFilePrecisionTimeRecord(b *readBuf, f *fileBlockHeader) error {
	var err error
	flags := b.uvarint()
	isUnixTime := flags&file5ExtraTimeIsUnixTime > 0
	if flags&file5ExtraTimeHasMTime > 0 {
		if isUnixTime {
			f.ModificationTime, err = readUnixTime(b)
		} else {
			f.ModificationTime, err = readWinFiletime(b)
		}
		if err != nil {
			return err
		}
	}
	if flags&file5ExtraTimeHasCTime > 0 {
		if isUnixTime {
			f.CreationTime, err = readUnixTime(b)
		} else {
			f.CreationTime, err = readWinFiletime(b)
		}
		if err != nil {
			return err
		}
	}
	if flags&file5ExtraTimeHasATime > 0 {
		if isUnixTime {
			f.AccessTime, err = readUnixTime(b)
		} else {
			f.AccessTime, err = readWinFiletime(b)
		}
		if err != nil {
			return err
		}
	}
	if isUnixTime && flags&file5ExtraTimeHasUnixNS > 0 {
		if flags&file5ExtraTimeHasMTime > 0 {
			ns, err := readUnixNanoseconds(b)
			if err != nil {
				return err
			}
			f.ModificationTime = f.ModificationTime.Add(ns)
		}
		if flags&file5ExtraTimeHasCTime > 0 {
			ns, err := readUnixNanoseconds(b)
			if err != nil {
				return err
			}
			f.CreationTime = f.CreationTime.Add(ns)
		}
		if flags&file5ExtraTimeHasATime > 0 {
			ns, err := readUnixNanoseconds(b)
			if err != nil {
				return err
			}
			f.AccessTime = f.AccessTime.Add(ns)
		}
	}
	return nil
}

// parseFileRedirectionRecord processes the file redirection record from a file header.
func parseFileRedirectionRecord(b *readBuf, f *fileBlockHeader) error {
	if len(*b) == 0 {
		return ErrCorruptFileHeader
	}
	f.LinkType = byte(b.uvarint())
	flags := b.uvarint()
	f.LinkTargetIsDir = flags&file5ExtraRedirDir > 0
	nameLen := b.uvarint()
	if nameLen > 0 && nameLen < maxPathSize {
		f.LinkTarget = b.stringAtMost(nameLen)
	}
	return nil
}

// parseFileOwnerRecord processes the file owner record from a file header.
func parseFileOwnerRecord(b *readBuf, f *fileBlockHeader) error {
	flags := b.uvarint()
	if flags&file5ExtraUnixOwnerHasUserName > 0 {
		nameLen := min(b.uvarint(), 255)
		name := b.stringAtMost(nameLen)
		f.UnixOwnerUserName = &name
	}
	if flags&file5ExtraUnixOwnerHasGroupName > 0 {
		nameLen := min(b.uvarint(), 255)
		name := b.stringAtMost(nameLen)
		f.UnixOwnerGroupName = &name
	}
	if flags&file5ExtraUnixOwnerHasUserID > 0 {
		id := b.uvarint()
		f.UnixOwnerUserID = &id
	}
	if flags&file5ExtraUnixOwnerHasGroupID > 0 {
		id := b.uvarint()
		f.UnixOwnerGroupID = &id
	}
	return nil
}

func (a *archive50) parseFileHeader(h *blockHeader50) (*fileBlockHeader, error) {
	f := new(fileBlockHeader)

	f.first = h.flags&block5DataNotFirst == 0
	f.last = h.flags&block5DataNotLast == 0

	flags := h.data.uvarint() // file flags
	f.IsDir = flags&file5IsDir > 0
	f.UnKnownSize = flags&file5UnpSizeUnknown > 0
	f.UnPackedSize = int64(h.data.uvarint())
	f.PackedSize = h.dataSize
	f.Attributes = int64(h.data.uvarint())
	if flags&file5HasUnixMtime > 0 {
		if len(h.data) < 4 {
			return nil, ErrCorruptFileHeader
		}
		f.ModificationTime = time.Unix(int64(h.data.uint32()), 0)
	}
	if flags&file5HasCRC32 > 0 {
		if len(h.data) < 4 {
			return nil, ErrCorruptFileHeader
		}
		f.sum = slices.Clone(h.data.bytes(4))
		if f.first {
			f.hash = newLittleEndianCRC32
		}
	}

	flags = h.data.uvarint() // compression flags
	f.Solid = flags&file5CompSolid > 0
	f.arcSolid = a.solid
	method := (flags & file5CompMethod) >> 7 // compression method (0 == none)
	if f.first && method != 0 {
		unpackver := flags & file5CompAlgorithm
		f.winSize = 0x20000 << ((flags & file5CompDictSize) >> 10)
		switch unpackver {
		case 0:
			f.decVer = decode50Ver
		case 1:
			if flags&file5CompV5Compat > 0 {
				f.decVer = decode50Ver
			} else {
				f.decVer = decode70Ver
			}
			f.winSize += f.winSize / 32 * int64((flags&file5CompDictFract)>>15)
		default:
			f.decVer = decodeUnknownVer
		}
	}
	switch h.data.uvarint() {
	case file5HostOSWindows:
		f.HostOS = HostOSWindows
	case file5HostOSUnix:
		f.HostOS = HostOSUnix
	default:
		f.HostOS = HostOSUnknown
	}
	nlen := h.data.uvarint()
	if h.data.len() < nlen {
		return nil, ErrCorruptFileHeader
	}
	f.Name = string(h.data.bytes(nlen))

	// parse optional extra records
	for _, e := range h.extra {
		var err error
		switch e.ftype {
		case file5ExtraCrypt:
			f.Encrypted = true
		case file5ExtraHash:
			// TODO: hash
		case file5ExtraTime:
			err = parseFilePrecisionTimeRecord(&e.data, f)
		case file5ExtraVersion:
			_ = e.data.uvarint() // ignore flags field
			f.Version = int(e.data.uvarint())
		case file5ExtraRedirect:
			err = parseFileRedirectionRecord(&e.data, f)
		case file5ExtraOwner:
			err = parseFileOwnerRecord(&e.data, f)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (a *archive50) parseArcBlock(h *blockHeader50) int {
	flags := h.data.uvarint()
	a.multi = flags&arc5MultiVol > 0
	a.solid = flags&arc5Solid > 0
	if flags&arc5VolNum > 0 {
		return int(h.data.uvarint())
	}
	return -1
}

func (a *archive50) readBlockHeader(r byteReader) (*blockHeader50, error) {
	// find the header size
	sizeBuf := make([]byte, 7)
	_, err := io.ReadFull(r, sizeBuf)
	if err != nil {
		return nil, err
	}
	b := readBuf(sizeBuf)
	crc := b.uint32()

	// Check if header size is valid
	size := b.uvarint()
	bufSize := 3 + size - b.len()
	if bufSize < 4 || size > maxHeaderSize {
		return nil, ErrBadBlockHeader
	}

	buf := make([]byte, bufSize)
	copy(buf, sizeBuf[4:])
	_, err = io.ReadFull(r, buf[3:])
	if err != nil {
		return nil, err
	}

	// check header crc
	hash := crc32.NewIEEE()
	_, _ = hash.Write(buf)
	if crc != hash.Sum32() {
		return nil, ErrBadHeaderCRC
	}

	b = buf[3-len(b):]
	h := new(blockHeader50)
	h.htype = b.uvarint()
	h.flags = b.uvarint()

	var extraSize uint64
	if h.flags&block5HasExtra > 0 {
		extraSize = b.uvarint()
	}
	if h.flags&block5HasData > 0 {
		h.dataSize = int64(b.uvarint())
	}
	if b.len() < extraSize {
		return nil, ErrCorruptBlockHeader
	}
	h.data = b.bytes(b.len() - extraSize)

	// read header extra records
	for len(b) > 0 {
		size = b.uvarint()
		if b.len() < size {
			return nil, ErrCorruptBlockHeader
		}
		data := readBuf(b.bytes(size))
		ftype := data.uvarint()
		h.extra = append(h.extra, extra{ftype, data})
	}

	return h, nil
}

func (a *archive50) mustReadBlockHeader(r byteReader) (*blockHeader50, error) {
	h, err := a.readBlockHeader(r)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return h, nil
}

func (a *archive50) init(br *bufVolumeReader) (int, error) {
	volnum := -1
	h, err := a.mustReadBlockHeader(br)
	if err != nil {
		return volnum, err
	}
	if h.htype == block5Encrypt {
		return volnum, ErrArchiveEncrypted
	}
	if h.htype != block5Arc {
		return volnum, ErrNoArchiveBlock
	}
	volnum = a.parseArcBlock(h)
	return volnum, nil
}

// nextBlock advances to the next file block in the archive
func (a *archive50) nextBlock(br *bufVolumeReader) (*fileBlockHeader, error) {
	for {
		// get next block header
		h, err := a.mustReadBlockHeader(br)
		if err != nil {
			return nil, err
		}
		switch h.htype {
		case block5File:
			return a.parseFileHeader(h)
		case block5End:
			flags := h.data.uvarint()
			if flags&endArc5NotLast == 0 || !a.multi {
				return nil, io.EOF
			}
			return nil, ErrMultiVolume
		default:
			if h.dataSize > 0 {
				err = br.Discard(h.dataSize) // skip over block data
				if err != nil {
					return nil, err
				}
			}
		}
	}
}
