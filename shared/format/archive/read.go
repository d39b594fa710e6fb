package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/longbox/longbox/shared/format/rardecode"
)

// Fits returns an *Error of kind TooLarge for an entry over the size limit, plain or packed, before anything of it is
// read. Incompressible data grows by less than an eighth.
func (e Entry) Fits(lim Limits) error {
	lim = lim.WithDefaults()
	if e.Size > lim.EntryBytes {
		return tooLarge("bytes in "+e.Name, e.Size, lim.EntryBytes)
	}
	if most := lim.EntryBytes + lim.EntryBytes/8; e.CompressedSize > most {
		return tooLarge("packed bytes of "+e.Name, e.CompressedSize, most)
	}
	return nil
}

// Open returns the plain bytes of an entry, from a reader of its range (Length bytes from Offset). The reader returns
// at most Size bytes. It fails with an *Error if size or checksum differ from the directory: Truncated if the range is
// short, otherwise Corrupt.
func (e Entry) Open(r io.Reader, lim Limits) (io.Reader, error) {
	lim = lim.WithDefaults()
	if err := e.Check(); err != nil {
		return nil, err
	}
	if err := e.Fits(lim); err != nil {
		return nil, err
	}
	raw, err := e.raw(r)
	if err != nil {
		return nil, err
	}
	content, err := e.decompress(raw, lim)
	if err != nil {
		if raw.failed != nil {
			err = raw.failed
		}
		return nil, err
	}
	return &plain{entry: e, source: raw, r: content, left: e.Size}, nil
}

// Raw returns the CompressedSize stored bytes of an entry, from a reader of its range. A source that ends early gives
// an *Error of kind Truncated, never a short result.
func (e Entry) Raw(r io.Reader) (io.Reader, error) {
	x, err := e.raw(r)
	if err != nil {
		return nil, err
	}
	if c, ok := r.(copier); ok {
		return &exactCopier{exact: x, from: c}, nil
	}
	return x, nil
}

// copier is a source that can pass bytes on without reading them: package blob's bodies, from connection to connection.
type copier interface {
	CopyN(w io.Writer, n int64) (int64, error)
}

func (e Entry) raw(r io.Reader) (*exact, error) {
	if e.Method >= PDFPage { // it has no header of ours
		return &exact{entry: e, r: r, left: e.Length}, nil
	}
	var h [localLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, e.shortOr(err)
	}
	if !bytes.HasPrefix(h[:], localSig) {
		return nil, Errorf(Corrupt, "%s: there is no entry where the archive's directory says", e.Name)
	}
	if !e.Encrypted && le16(h[6:])&flagEncrypted != 0 {
		return nil, Errorf(Encrypted, "%s is encrypted: remove the archive's password", e.Name)
	}
	if le16(h[8:]) != e.Method {
		return nil, Errorf(Corrupt, "%s: the archive's directory states the compression method %d, the entry itself %d", e.Name, e.Method, le16(h[8:]))
	}
	variable := int64(le16(h[26:])) + int64(le16(h[28:]))
	if localLen+variable+e.CompressedSize > e.Length {
		return nil, Errorf(Corrupt, "%s overlaps what follows it in the archive", e.Name)
	}
	if _, err := io.CopyN(io.Discard, r, variable); err != nil {
		return nil, e.shortOr(err)
	}
	return &exact{entry: e, r: r, left: e.CompressedSize, flags: le16(h[6:])}, nil
}

// Gzip returns a deflated entry as a gzip file (RFC 1952) of GzipSize bytes without inflating it, from a reader of its
// range. The receiver checks size and checksum. Other methods give an *Error of kind Unsupported.
func (e Entry) Gzip(r io.Reader) (io.Reader, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if e.Method != Deflated {
		return nil, Errorf(Unsupported, "%s is not deflated", e.Name)
	}
	raw, err := e.Raw(r)
	if err != nil {
		return nil, err
	}
	const unknownSystem = 255
	header := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, unknownSystem}
	trailer := binary.LittleEndian.AppendUint32(nil, e.CRC32)
	trailer = binary.LittleEndian.AppendUint32(trailer, uint32(e.Size))
	if c, ok := raw.(*exactCopier); ok {
		return &framed{parts: [3]io.Reader{bytes.NewReader(header), c, bytes.NewReader(trailer)}}, nil
	}
	return io.MultiReader(bytes.NewReader(header), raw, bytes.NewReader(trailer)), nil
}

// GzipSize returns the size of Gzip's result.
func (e Entry) GzipSize() int64 { return 10 + e.CompressedSize + 8 }

// Check returns the *Error that Open would return for the directory header alone: Encrypted or Unsupported.
func (e Entry) Check() error {
	switch {
	case e.Encrypted:
		return Errorf(Encrypted, "%s is encrypted: remove the archive's password", e.Name)
	case !readable(e.Method):
		return Errorf(Unsupported, "%s is compressed with %s: pack the archive again with deflate or none", e.Name, methodName(e.Method))
	}
	return nil
}

func methodName(m uint16) string {
	if name := methodNames[m]; name != "" {
		return name + " (method " + strconv.Itoa(int(m)) + ")"
	}
	return "an unknown method (" + strconv.Itoa(int(m)) + ")"
}

func (e Entry) shortOr(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Kind: Truncated, Msg: e.Name + ": the file ends inside the entry; get a complete copy", Err: io.ErrUnexpectedEOF}
	}
	return err
}

// exact returns exactly left bytes of r, or an error.
type exact struct {
	entry  Entry
	r      io.Reader
	left   int64
	flags  uint16 // of the local header
	failed error  // why there are no more bytes, unless the archive ends
}

func (x *exact) Read(b []byte) (int, error) {
	if x.left == 0 {
		return 0, io.EOF
	}
	n, err := x.r.Read(b[:min(int64(len(b)), x.left)])
	x.left -= int64(n)
	if err != nil && x.left > 0 {
		x.failed = x.entry.shortOr(err)
		return n, x.failed
	}
	return n, nil
}

// exactCopier is exact for a source that can pass bytes on.
type exactCopier struct {
	*exact
	from copier
}

// WriteTo passes the rest on.
func (x *exactCopier) WriteTo(w io.Writer) (int64, error) {
	n, err := x.from.CopyN(w, x.left)
	x.left -= n
	if err != nil {
		err = x.entry.shortOr(err)
	}
	return n, err
}

// framed is a gzip file around an entry that can be passed on: io.MultiReader, whose WriteTo would allocate a buffer of
// 32 KB for each page that needs none.
type framed struct {
	parts [3]io.Reader // header, entry, trailer
	at    int
}

func (f *framed) Read(b []byte) (int, error) {
	for f.at < len(f.parts) {
		n, err := f.parts[f.at].Read(b)
		if err == io.EOF {
			f.at++
			err = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.EOF
}

// WriteTo passes the rest on.
func (f *framed) WriteTo(w io.Writer) (n int64, err error) {
	for f.at < len(f.parts) && err == nil {
		var m int64
		m, err = io.Copy(w, f.parts[f.at])
		n += m
		f.at++
	}
	return n, err
}

// plain returns the bytes of an entry and checks them against its directory header. It holds back the last bytes if
// they differ, so that a caller who passes them on never sends all of a damaged entry.
type plain struct {
	entry  Entry
	source *exact
	r      io.Reader
	left   int64
	crc    uint32
	err    error
}

func (p *plain) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if p.left == 0 {
		p.err = p.finish()
		return 0, p.err
	}
	n, err := p.r.Read(b[:min(int64(len(b)), p.left)])
	p.crc = crc32.Update(p.crc, crc32.IEEETable, b[:n])
	p.left -= int64(n)
	switch {
	case err == io.EOF && p.left > 0:
		p.err = Errorf(Corrupt, "%s: %d bytes fewer than the archive states", p.entry.Name, p.left)
	case err != nil && err != io.EOF:
		p.err = p.corruptOr(err)
	case p.left == 0:
		if p.err = p.finish(); p.err != io.EOF {
			return 0, p.err
		}
	}
	return n, p.err
}

// finish checks that nothing follows the last byte and that the checksum is right. It then returns io.EOF.
func (p *plain) finish() error {
	var one [1]byte
	for {
		n, err := p.r.Read(one[:])
		if n > 0 {
			return Errorf(Corrupt, "%s: more than the %d bytes that the archive states", p.entry.Name, p.entry.Size)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return p.corruptOr(err)
		}
	}
	if p.crc != p.entry.CRC32 && (p.entry.CRC32 != 0 || p.entry.Method < PDFPage) {
		return Errorf(Corrupt, "%s: the checksum does not match, its content is damaged", p.entry.Name)
	}
	return io.EOF
}

// corruptOr distinguishes errors of the source from errors in the data.
func (p *plain) corruptOr(err error) error {
	var problem *Error
	switch {
	case p.source.failed != nil:
		return p.source.failed
	case errors.As(err, &problem):
		return err
	case errors.Is(err, rardecode.ErrDictionaryTooLarge): // also where the data restarts with a model of its own
		return &Error{Kind: TooLarge, Msg: p.entry.Name + " needs a larger model than the limit for dictionaries", Err: err}
	}
	return p.entry.damaged(err)
}

// Verify returns content, an entry decompressed by another package, and checks its size and checksum while it is read.
func Verify(e Entry, content io.Reader) io.Reader {
	return &plain{entry: e, source: &exact{}, r: content, left: e.Size}
}

// Source records a read error, to distinguish it from damaged data.
type Source struct {
	R      io.Reader
	Failed error // nil after success or EOF
}

func (s *Source) Read(p []byte) (int, error) {
	n, err := s.R.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.Failed = err
	}
	return n, err
}
