package rardecode

import (
	"bufio"
	"bytes"
	"hash"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
)

const (
	// block types
	blockArc        = 0x73
	blockFile       = 0x74
	blockComment    = 0x75
	blockAV         = 0x76
	blockOldService = 0x77
	blockSign       = 0x79
	blockService    = 0x7a
	blockEnd        = 0x7b

	// old service subtypes
	subtypeUnixOwner = 0x101

	// block flags
	blockHasData = 0x8000

	// archive block flags
	arcComment   = 0x0002
	arcSolid     = 0x0008
	arcEncrypted = 0x0080

	// file block flags
	fileSplitBefore = 0x0001
	fileSplitAfter  = 0x0002
	fileEncrypted   = 0x0004
	fileComment     = 0x0008
	fileSolid       = 0x0010
	fileWindowMask  = 0x00e0
	fileLargeData   = 0x0100
	fileUnicode     = 0x0200
	fileSalt        = 0x0400
	fileVersion     = 0x0800
	fileExtTime     = 0x1000

	saltSize = 8 // size of the salt of an encrypted file
)

type blockHeader15 struct {
	htype    byte // block header type
	flags    uint16
	crc      uint16
	hash     hash.Hash32
	data     []byte // header data
	dataSize int64  // size of extra block data
}

func (h *blockHeader15) checkCRC() error {
	data := readBuf(h.data)
	switch h.htype {
	case blockComment:
		if len(data) < 6 {
			return ErrCorruptBlockHeader
		}
		data = data[:6]
	case blockOldService:
		if len(data) < 2 {
			return ErrCorruptBlockHeader
		}
		if data.uint16() == subtypeUnixOwner {
			return nil
		}
	case blockAV, blockSign:
		return nil
	}
	_, _ = h.hash.Write(data)
	if h.crc != uint16(h.hash.Sum32()) {
		return ErrBadHeaderCRC
	}
	return nil
}

// archive15 implements archiveBlockReader for RAR 1.5 file format archives
type archive15 struct {
	solid bool // archive is a solid archive
}

// decodeName decodes a Unicode filename from a file header.
func decodeName(buf []byte) string {
	before, after, ok := bytes.Cut(buf, []byte{0})
	if !ok {
		return string(buf) // filename is UTF-8
	}

	name := before
	encName := readBuf(after)
	if len(encName) < 2 {
		return "" // invalid encoding
	}
	highByte := uint16(encName.byte()) << 8
	flags := encName.byte()
	flagBits := 8
	var wchars []uint16 // decoded characters are UTF-16
	for len(wchars) < len(name) && len(encName) > 0 {
		if flagBits == 0 {
			flags = encName.byte()
			flagBits = 8
			if len(encName) == 0 {
				break
			}
		}
		switch flags >> 6 {
		case 0:
			wchars = append(wchars, uint16(encName.byte()))
		case 1:
			wchars = append(wchars, uint16(encName.byte())|highByte)
		case 2:
			if len(encName) < 2 {
				break
			}
			wchars = append(wchars, encName.uint16())
		case 3:
			n := encName.byte()
			b := name[len(wchars):]
			if l := int(n&0x7f) + 2; l < len(b) {
				b = b[:l]
			}
			if n&0x80 > 0 {
				if len(encName) < 1 {
					break
				}
				ec := encName.byte()
				for _, c := range b {
					wchars = append(wchars, uint16(c+ec)|highByte)
				}
			} else {
				for _, c := range b {
					wchars = append(wchars, uint16(c))
				}
			}
		}
		flags <<= 2
		flagBits -= 2
	}
	return string(utf16.Decode(wchars))
}

// DecodeName returns the name in a file header of RAR 1.5 to 4 with these flags.
func DecodeName(raw []byte, flags uint16) string {
	name := string(raw)
	if flags&fileUnicode > 0 {
		name = decodeName(raw)
	}
	// Rar 4.x uses '\' as file separator
	name = strings.ReplaceAll(name, "\\", "/")

	if flags&fileVersion > 0 {
		// file version is stored as ';n' appended to file name
		i := strings.LastIndex(name, ";")
		if i > 0 {
			j, err := strconv.Atoi(name[i+1:])
			if err == nil && j >= 0 {
				name = name[:i]
			}
		}
	}
	return name
}

// skipExtTimes skips the optional extra time field of the file header.
func skipExtTimes(b *readBuf) {
	if len(*b) < 2 {
		return // invalid, not enough data
	}
	flags := b.uint16()
	for i := range 3 { // of modification, creation and access
		n := flags >> uint((3-i)*4)
		if n&0x8 == 0 {
			continue
		}
		if i != 0 { // that of modification has no seconds here
			if len(*b) < 4 {
				return // invalid, not enough data
			}
			b.uint32()
		}
		n &= 0x3
		if len(*b) < int(n) {
			return // invalid, not enough data
		}
		b.bytes(uint64(n))
	}
}

func (a *archive15) parseFileHeader(h *blockHeader15) (*fileBlockHeader, error) {
	f := new(fileBlockHeader)

	f.split = h.flags&(fileSplitBefore|fileSplitAfter) != 0
	f.Solid = h.flags&fileSolid > 0
	f.arcSolid = a.solid
	f.Encrypted = h.flags&fileEncrypted > 0
	f.IsDir = h.flags&fileWindowMask == fileWindowMask
	if !f.IsDir {
		f.winSize = 0x10000 << ((h.flags & fileWindowMask) >> 5)
	}

	b := readBuf(h.data)
	if len(b) < 21 {
		return nil, ErrCorruptFileHeader
	}

	f.PackedSize = h.dataSize
	f.UnPackedSize = int64(b.uint32())
	_ = b.byte() // host os
	f.hasSum, f.sum = true, b.uint32()

	_ = b.uint32()            // modification time
	unpackver := b.byte()     // decoder version
	method := b.byte() - 0x30 // decryption method
	namesize := uint64(b.uint16())
	_ = b.uint32() // attributes
	if h.flags&fileLargeData > 0 {
		if len(b) < 8 {
			return nil, ErrCorruptFileHeader
		}
		h.dataSize |= int64(b.uint32()) << 32
		f.PackedSize = h.dataSize
		f.UnPackedSize |= int64(b.uint32()) << 32
		f.UnKnownSize = f.UnPackedSize == -1
	} else if int32(f.UnPackedSize) == -1 {
		f.UnKnownSize = true
		f.UnPackedSize = -1
	}
	if b.len() < namesize {
		return nil, ErrCorruptFileHeader
	}
	f.Name = DecodeName(b.bytes(namesize), h.flags)

	if h.flags&fileSalt > 0 {
		if len(b) < saltSize {
			return nil, ErrCorruptFileHeader
		}
		b.bytes(saltSize)
	}
	if h.flags&fileExtTime > 0 {
		skipExtTimes(&b)
	}

	if h.flags&fileComment > 0 {
		processed := len(h.data) - len(b)
		h.data = h.data[:processed]
	}
	err := h.checkCRC()
	if err != nil {
		return nil, err
	}

	if method != 0 {
		switch unpackver {
		case 15:
			f.decVer = decode15Ver
		case 20, 26:
			f.decVer = decode20Ver
		case 29:
			f.decVer = decode29Ver
		default:
			f.decVer = decodeUnknownVer
		}
	}
	return f, nil
}

func (a *archive15) parseArcBlock(h *blockHeader15) error {
	a.solid = h.flags&arcSolid > 0
	if h.flags&arcEncrypted > 0 {
		return ErrArchiveEncrypted
	}
	return h.checkCRC()
}

// readBlockHeader returns the next block header in the archive.
// It will return io.EOF if there were no bytes read.
func (a *archive15) readBlockHeader(r io.Reader) (*blockHeader15, error) {
	sizeBuf := make([]byte, 7)
	_, err := io.ReadFull(r, sizeBuf)
	if err != nil {
		return nil, err
	}
	b := readBuf(sizeBuf)
	h := new(blockHeader15)
	h.crc = b.uint16()
	h.hash = crc32.NewIEEE()
	_, _ = h.hash.Write(b)
	h.htype = b.byte()
	h.flags = b.uint16()
	size := int(b.uint16())
	if h.htype == blockArc && h.flags&arcComment > 0 {
		// comment block embedded into archive block
		if size < 13 {
			return nil, ErrCorruptBlockHeader
		}
		size = 13
	} else if size < 7 {
		return nil, ErrCorruptBlockHeader
	}

	b = make([]byte, size-7)
	_, err = io.ReadFull(r, b)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if h.flags&blockHasData > 0 {
		if len(b) < 4 {
			return nil, ErrCorruptBlockHeader
		}
		_, _ = h.hash.Write(b[:4])
		h.dataSize = int64(b.uint32())
	}
	h.data = b
	return h, nil
}

func (a *archive15) init(br *bufio.Reader) error {
	h, err := a.readBlockHeader(br)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	} else if h.htype != blockArc {
		err = ErrNoArchiveBlock
	} else {
		err = a.parseArcBlock(h)
	}
	return err
}

// nextBlock advances to the next file block in the archive
func (a *archive15) nextBlock(br *bufio.Reader) (*fileBlockHeader, error) {
	for {
		// could return an io.EOF here as 1.5 archives may not have an end block.
		h, err := a.readBlockHeader(br)
		if err != nil {
			return nil, err
		}
		switch h.htype {
		case blockFile:
			return a.parseFileHeader(h)
		case blockService:
			_, err = a.parseFileHeader(h)
		case blockEnd:
			if err = h.checkCRC(); err == nil {
				err = io.EOF
			}
		default:
			err = h.checkCRC()
		}
		if err != nil {
			return nil, err
		}
		if err := discard(br, h.dataSize); err != nil { // skip over block data
			return nil, err
		}
	}
}
