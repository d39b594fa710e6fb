package rardecode

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"strings"
)

var (
	ErrNoSig           = errors.New("rardecode: RAR signature not found")
	ErrShortFile       = errors.New("rardecode: decoded file too short")
	ErrBadFileChecksum = errors.New("rardecode: bad file checksum")
)

// FileHeader represents a single file in a RAR archive.
type FileHeader struct {
	Name         string // file name using '/' as the directory separator
	IsDir        bool   // is a directory
	Solid        bool   // is a solid file
	Encrypted    bool   // file contents are encrypted
	PackedSize   int64  // packed file size
	UnPackedSize int64  // unpacked file size
	UnKnownSize  bool   // unpacked file size is not known
}

// archiveFile is the content of one file. The next one is reached through it: in a solid archive all of it is
// decompressed before.
type archiveFile interface {
	io.Reader
	nextFile() (*fileBlockHeader, error)
	newArchiveFile(h *fileBlockHeader) (archiveFile, error)
}

type errorFile struct {
	archiveFile
	err error
}

func (ef *errorFile) Read(p []byte) (int, error) { return 0, ef.err }

// packedFileReader provides sequential access to packed files in a RAR archive.
type packedFileReader struct {
	br  *bufio.Reader
	arc archiveBlockReader
	h   *fileBlockHeader // current file header
	n   int64            // bytes left in the current file
	dr  *decodeReader

	maxDictionary int64
}

// nextFile advances to the next packed file in the RAR archive.
func (f *packedFileReader) nextFile() (*fileBlockHeader, error) {
	if err := discard(f.br, f.n); err != nil {
		return nil, err
	}
	f.n = 0
	h, err := f.arc.nextBlock(f.br)
	switch {
	case err != nil:
		return nil, err
	case h.split:
		return nil, ErrMultiVolume
	case h.PackedSize < 0:
		return nil, ErrCorruptFileHeader
	}
	f.h, f.n = h, h.PackedSize
	return h, nil
}

// discard skips n bytes of br, if n is positive.
func discard(br *bufio.Reader, n int64) error {
	_, err := io.CopyN(io.Discard, br, n)
	return err
}

// Read reads the packed data for the current file into p.
func (f *packedFileReader) Read(p []byte) (int, error) {
	if f.n == 0 {
		return 0, io.EOF
	}
	n, err := f.br.Read(p[:min(int64(len(p)), f.n)])
	f.n -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (f *packedFileReader) ReadByte() (byte, error) {
	if f.n == 0 {
		return 0, io.EOF
	}
	b, err := f.br.ReadByte()
	if err == nil {
		f.n--
	} else if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func (pr *packedFileReader) newArchiveFile(h *fileBlockHeader) (archiveFile, error) {
	var r archiveFile = pr
	if h.Encrypted {
		return &errorFile{archiveFile: r, err: ErrArchivedFileEncrypted}, nil
	}
	// check for compression
	if h.decVer != decodeNone {
		if pr.dr == nil {
			pr.dr = &decodeReader{maxModel: pr.maxDictionary}
		}
		// doesn't make sense for the dictionary to be larger than the file
		if !h.Solid && !h.UnKnownSize && h.winSize > h.UnPackedSize {
			h.winSize = h.UnPackedSize
		}
		if h.winSize > maxDictSize || h.winSize > pr.maxDictionary {
			return nil, ErrDictionaryTooLarge
		}
		if h.winSize > math.MaxInt {
			return nil, ErrPlatformIntSize
		}
		err := pr.dr.init(pr, h.decVer, int(h.winSize), !h.Solid, h.arcSolid, h.UnPackedSize)
		if err != nil {
			return nil, err
		}
		r = pr.dr
	}
	if h.UnPackedSize >= 0 && !h.UnKnownSize {
		// Limit reading to UnPackedSize as there may be padding
		r = &limitedReader{archiveFile: r, size: h.UnPackedSize}
	}
	if h.hasSum {
		r = &checksumReader{archiveFile: r, sum: h.sum}
	}
	return r, nil
}

type limitedReader struct {
	archiveFile
	size   int64
	offset int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	diff := l.size - l.offset
	if diff <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > diff {
		p = p[0:diff]
	}
	n, err := l.archiveFile.Read(p)
	l.offset += int64(n)
	if err == io.EOF {
		if l.offset < l.size {
			return n, ErrShortFile
		}
		return n, nil
	}
	return n, err
}

// checksumReader is needed beside the check of package archive, to which a checksum of 0 is an unknown one.
type checksumReader struct {
	archiveFile
	crc, sum uint32
}

func (cr *checksumReader) Read(p []byte) (int, error) {
	n, err := cr.archiveFile.Read(p)
	cr.crc = crc32.Update(cr.crc, crc32.IEEETable, p[:n])
	if err == io.EOF && cr.crc != cr.sum {
		err = ErrBadFileChecksum
	}
	return n, err
}

// Reader provides sequential access to files in a RAR archive.
type Reader struct {
	f archiveFile
}

func (r *Reader) Read(p []byte) (int, error) { return r.f.Read(p) }

// Next advances to the next file in the archive.
func (r *Reader) Next() (*FileHeader, error) {
	h, err := r.f.nextFile()
	if err != nil {
		return nil, err
	}
	r.f, err = r.f.newArchiveFile(h)
	if err != nil {
		return nil, err
	}
	return &h.FileHeader, nil
}

const (
	signature15 = "Rar!\x1a\x07\x00"
	signature50 = "Rar!\x1a\x07\x01\x00"
)

// NewReader creates a Reader of an archive in one volume, which r returns from its signature on. It reads bufferSize
// bytes at a time. A dictionary or a model of more than maxDictionary bytes is ErrDictionaryTooLarge.
func NewReader(r io.Reader, bufferSize int, maxDictionary int64) (*Reader, error) {
	f := &packedFileReader{br: bufio.NewReaderSize(r, bufferSize), maxDictionary: maxDictionary}
	start, err := f.br.Peek(len(signature50))
	if err != nil {
		return nil, err
	}
	signature := signature50
	switch {
	case string(start) == signature50:
		f.arc = &archive50{}
	case strings.HasPrefix(string(start), signature15):
		f.arc, signature = &archive15{}, signature15
	default:
		return nil, ErrNoSig
	}
	if err := discard(f.br, int64(len(signature))); err != nil {
		return nil, err
	}
	if err := f.arc.init(f.br); err != nil {
		return nil, err
	}
	return &Reader{f}, nil
}
