package rar

import (
	"cmp"
	"errors"
	"io"

	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/rardecode"
)

// Walk decompresses an archive from its first byte and passes the wanted files (by their number, as in Entry.Offset) to
// each, in archive order, until each returns an error or none is left. Errors of the source and of each are passed on;
// problems of the archive are an *archive.Error.
func Walk(source io.Reader, lim archive.Limits, wanted map[int64]archive.Entry, each func(number int64, content io.Reader) error) error {
	lim = lim.WithDefaults()
	in := &archive.Source{R: source}
	left := len(wanted)
	r, err := rardecode.NewReader(in, 256<<10, lim.DictionaryBytes)
	for n := int64(0); err == nil && left > 0; n++ {
		if _, err = r.Next(); err != nil {
			break
		}
		e, ok := wanted[n]
		if !ok {
			continue // later files may need it: the package decompresses it on the way
		}
		left--
		content := archive.Verify(e, r)
		if err := each(n, content); err != nil {
			return cmp.Or(in.Failed, err)
		}
	}
	switch {
	case in.Failed != nil:
		return in.Failed
	case err == nil:
		return nil
	case errors.Is(err, rardecode.ErrDictionaryTooLarge):
		return archive.Errorf(archive.TooLarge, "the archive needs a dictionary larger than the limit of %d bytes", lim.DictionaryBytes)
	case errors.Is(err, rardecode.ErrArchivedFileEncrypted), errors.Is(err, rardecode.ErrArchiveEncrypted):
		return errEncrypted
	}
	return &archive.Error{Kind: archive.Corrupt, Msg: "the RAR archive is damaged: its files cannot be decompressed", Err: err}
}
