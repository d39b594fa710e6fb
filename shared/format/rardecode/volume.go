package rardecode

import "io"

const DefaultMaxDictionarySize = 4 << 30 // default max dictionary size of 4GB

type options struct {
	bsize       int   // size to be use for bufio.Reader
	maxDictSize int64 // max dictionary size
}

// An Option is used for optional archive extraction settings.
type Option func(*options)

// BufferSize sets the size of the bufio.Reader used in reading the archive.
func BufferSize(size int) Option {
	return func(o *options) { o.bsize = size }
}

// MaxDictionarySize sets the maximum size in bytes of the dictionary used in decoding a file.
// Any attempt to decode a file with a larger size will return an error.
// The default size if not set is DefaultMaxDictionarySize.
// Any size above 64GB will be ignored. Any size below 256kB will prevent any file from being decoded.
func MaxDictionarySize(size int64) Option {
	return func(o *options) { o.maxDictSize = size }
}

func getOptions(opts []Option) *options {
	opt := &options{maxDictSize: DefaultMaxDictionarySize}
	for _, f := range opts {
		f(opt)
	}
	return opt
}

type volume interface {
	byteReader
	writeToAtMost(w io.Writer, n int64) (int64, error)
	nextBlock() (*fileBlockHeader, error)
}

type readerVolume struct {
	br  *bufVolumeReader // buffered reader for current volume file
	n   int64            // bytes left in current block
	arc archiveBlockReader
}

func (v *readerVolume) nextBlock() (*fileBlockHeader, error) {
	if v.n > 0 {
		err := v.br.Discard(v.n)
		if err != nil {
			return nil, err
		}
		v.n = 0
	}
	f, err := v.arc.nextBlock(v.br)
	if err != nil {
		return nil, err
	}
	if f.PackedSize < 0 {
		return nil, ErrCorruptFileHeader
	}
	v.n = f.PackedSize
	return f, nil
}

func (v *readerVolume) Read(p []byte) (int, error) {
	if v.n == 0 {
		return 0, io.EOF
	}
	if v.n < int64(len(p)) {
		p = p[:v.n]
	}
	n, err := v.br.Read(p)
	v.n -= int64(n)
	if err == io.EOF && v.n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (v *readerVolume) ReadByte() (byte, error) {
	if v.n == 0 {
		return 0, io.EOF
	}
	b, err := v.br.ReadByte()
	if err == nil {
		v.n--
	} else if err == io.EOF && v.n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func (v *readerVolume) writeToAtMost(w io.Writer, n int64) (int64, error) {
	if n == 0 {
		return 0, nil
	}
	if n > 0 {
		n = min(n, v.n)
	} else {
		n = v.n
	}
	l, err := v.br.writeToN(w, n)
	v.n -= l
	return l, err
}

func newVolume(r io.Reader, opt *options) (*readerVolume, error) {
	br, err := newBufVolumeReader(r, opt.bsize)
	if err != nil {
		return nil, err
	}
	v := &readerVolume{br: br}
	switch br.ver {
	case archiveVersion15:
		v.arc = &archive15{}
	case archiveVersion50:
		v.arc = &archive50{}
	default:
		return nil, ErrUnknownVersion
	}
	n, err := v.arc.init(br)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		return nil, ErrBadVolumeNumber
	}
	return v, nil
}
