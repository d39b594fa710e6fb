package rardecode

import (
	"bufio"
	"encoding/binary"
	"errors"
)

const (
	decodeNone = iota // default is no decoder (a stored file)
	decodeUnknownVer
	decode15Ver
	decode20Ver
	decode29Ver
	decode50Ver
	decode70Ver
)

var (
	ErrCorruptBlockHeader    = errors.New("rardecode: corrupt block header")
	ErrCorruptFileHeader     = errors.New("rardecode: corrupt file header")
	ErrBadHeaderCRC          = errors.New("rardecode: bad header crc")
	ErrDecoderOutOfData      = errors.New("rardecode: decoder expected more data than is in packed file")
	ErrArchiveEncrypted      = errors.New("rardecode: archive encrypted, password required")
	ErrArchivedFileEncrypted = errors.New("rardecode: archived files encrypted, password required")
	ErrMultiVolume           = errors.New("rardecode: multi-volume archive continues in next file")
)

type readBuf []byte

func (b *readBuf) len() uint64 {
	return uint64(len(*b))
}

func (b *readBuf) byte() byte {
	v := (*b)[0]
	*b = (*b)[1:]
	return v
}

func (b *readBuf) uint16() uint16 {
	v := binary.LittleEndian.Uint16(*b)
	*b = (*b)[2:]
	return v
}

func (b *readBuf) uint32() uint32 {
	v := binary.LittleEndian.Uint32(*b)
	*b = (*b)[4:]
	return v
}

func (b *readBuf) bytes(n uint64) []byte {
	v := (*b)[:n]
	*b = (*b)[n:]
	return v
}

func (b *readBuf) uvarint() uint64 {
	n, cnt := binary.Uvarint(*b)
	if cnt == 0 {
		// buffer too small
		cnt = len(*b)
	} else if cnt < 0 {
		// value overflows 64 bits, -cnt is the number of bytes read
		cnt = -cnt
	}
	*b = (*b)[cnt:]
	return n
}

// fileBlockHeader represents a file block in a RAR archive.
// Solid files retain decode tables and dictionary from previous solid files in the archive.
type fileBlockHeader struct {
	split    bool   // file continues from or in another volume
	arcSolid bool   // archive is solid
	winSize  int64  // decode window size
	hasSum   bool   // sum is known
	sum      uint32 // expected CRC32 of file contents
	decVer   int    // decoder to use for file
	FileHeader
}

// archiveBlockReader returns the next fileBlockHeader in an archive.
type archiveBlockReader interface {
	init(br *bufio.Reader) error                          // reads the main header
	nextBlock(br *bufio.Reader) (*fileBlockHeader, error) // reads up to the next fileBlockHeader
}
