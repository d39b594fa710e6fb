package rardecode

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"
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

	// main archive block flags
	arc5Solid = 0x0004

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

	// file header extra types
	file5ExtraCrypt = 1

	maxDictSize   = 0x1000000000 // maximum dictionary size 64GB
	maxHeaderSize = 0x200000     // maximum header size: https://www.rarlab.com/technote.htm
)

var (
	ErrPlatformIntSize    = errors.New("rardecode: platform integer size too small")
	ErrDictionaryTooLarge = errors.New("rardecode: decode dictionary too large")
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

// archive50 implements archiveBlockReader for RAR 5 file format archives
type archive50 struct {
	solid bool // is a solid archive
}

func (a *archive50) parseFileHeader(h *blockHeader50) (*fileBlockHeader, error) {
	f := new(fileBlockHeader)

	f.split = h.flags&(block5DataNotFirst|block5DataNotLast) != 0

	flags := h.data.uvarint() // file flags
	f.IsDir = flags&file5IsDir > 0
	f.UnKnownSize = flags&file5UnpSizeUnknown > 0
	f.UnPackedSize = int64(h.data.uvarint())
	f.PackedSize = h.dataSize
	_ = h.data.uvarint() // attributes
	if flags&file5HasUnixMtime > 0 {
		if len(h.data) < 4 {
			return nil, ErrCorruptFileHeader
		}
		_ = h.data.uint32()
	}
	if flags&file5HasCRC32 > 0 {
		if len(h.data) < 4 {
			return nil, ErrCorruptFileHeader
		}
		f.hasSum, f.sum = true, h.data.uint32()
	}

	flags = h.data.uvarint() // compression flags
	f.Solid = flags&file5CompSolid > 0
	f.arcSolid = a.solid
	method := (flags & file5CompMethod) >> 7 // compression method (0 == none)
	if method != 0 {
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
	_ = h.data.uvarint() // host os
	nlen := h.data.uvarint()
	if h.data.len() < nlen {
		return nil, ErrCorruptFileHeader
	}
	f.Name = string(h.data.bytes(nlen))

	for _, e := range h.extra {
		if e.ftype == file5ExtraCrypt {
			f.Encrypted = true
		}
	}
	return f, nil
}

func (a *archive50) readBlockHeader(r io.Reader) (*blockHeader50, error) {
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

func (a *archive50) mustReadBlockHeader(r io.Reader) (*blockHeader50, error) {
	h, err := a.readBlockHeader(r)
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return h, nil
}

func (a *archive50) init(br *bufio.Reader) error {
	h, err := a.mustReadBlockHeader(br)
	if err != nil {
		return err
	}
	if h.htype == block5Encrypt {
		return ErrArchiveEncrypted
	}
	if h.htype != block5Arc {
		return ErrNoArchiveBlock
	}
	a.solid = h.data.uvarint()&arc5Solid > 0
	return nil
}

// nextBlock advances to the next file block in the archive
func (a *archive50) nextBlock(br *bufio.Reader) (*fileBlockHeader, error) {
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
			return nil, io.EOF
		default:
			if err := discard(br, h.dataSize); err != nil { // skip over block data
				return nil, err
			}
		}
	}
}
