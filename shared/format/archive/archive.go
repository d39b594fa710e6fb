// Package archive reads ZIP archives that lie in an object store: the directory
// from the last bytes of the object, an entry from one range of it.
//
// Nothing here does I/O of its own. ReadDirectory is given the end of the
// archive and, when the directory is larger than that, fetches the rest once.
// An Entry knows the range that holds it (Offset, Length), so a page costs one
// request. archive/zip over ranged reads would cost about a hundred.
//
// Archives are hostile until proven otherwise: counts, sizes and offsets are
// checked against Limits and against each other before memory or time is spent
// on them. Names are cleaned for display and sorting; they are never a path.
package archive

import "github.com/longbox/longbox/shared/format/internal/limit"

// TailBytes is how many of an archive's last bytes are sure to hold its end
// record: the longest comment, the record itself and the two zip64 records
// (APPNOTE 4.3.14 to 4.3.16). It nearly always holds the whole directory too.
const TailBytes = 0xffff + endLen + locatorLen + end64Len

// Limits bound what an archive may ask of us. A field that is zero or less
// stands for its default.
type Limits struct {
	Entries         int   `env:"ARCHIVE_MAX_ENTRIES" envDefault:"20000"`       // entries in the directory
	DirectoryBytes  int64 `env:"ARCHIVE_MAX_DIRECTORY" envDefault:"8388608"`   // size of the directory
	NameBytes       int   `env:"ARCHIVE_MAX_NAME" envDefault:"1024"`           // one name, as stored
	EntryBytes      int64 `env:"ARCHIVE_MAX_ENTRY" envDefault:"67108864"`      // one page, and any entry that is opened, uncompressed
	TotalBytes      int64 `env:"ARCHIVE_MAX_TOTAL" envDefault:"4294967296"`    // all entries together, uncompressed
	Ratio           int64 `env:"ARCHIVE_MAX_RATIO" envDefault:"200"`           // all entries together to the size of the archive; applied above 64 MiB
	DictionaryBytes int64 `env:"ARCHIVE_MAX_DICTIONARY" envDefault:"67108864"` // what a decompressor may keep of what it has read
}

// ratioFloor is the total below which no compression ratio is refused: small
// books of blank pages or plain text compress extremely well.
const ratioFloor = 64 << 20

// Validate names the first setting that is out of bounds. The zero value stands for the defaults.
func (l Limits) Validate() error { return limit.Check(l) }

// WithDefaults fills the fields that are not set with limits that fit every real book known to us.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Entries:         limit.Or(l.Entries, 20_000),
		DirectoryBytes:  limit.Or(l.DirectoryBytes, 8<<20),
		NameBytes:       limit.Or(l.NameBytes, 1024),
		EntryBytes:      limit.Or(l.EntryBytes, 64<<20),
		TotalBytes:      limit.Or(l.TotalBytes, 4<<30),
		Ratio:           limit.Or(l.Ratio, 200),
		DictionaryBytes: limit.Or(l.DictionaryBytes, 64<<20),
	}
}

// Directory is the list of what an archive holds.
type Directory struct {
	Entries []Entry // in directory order
	Size    int64   // of the archive, in bytes
	// Fingerprint stands for the content where the entries have no checksums.
	Fingerprint string
}

// Entry is one file or folder of an archive.
type Entry struct {
	Name           string // cleaned, UTF-8, '/' separated; for display and sorting, never a path
	Offset         int64  // of the local header, from the start of the archive
	Length         int64  // bytes from Offset to request: up to the next entry or the directory
	CompressedSize int64
	Size           int64  // uncompressed
	Method         uint16 // Stored, Deflated …, or how an entry of another container is read
	CRC32          uint32 // of the uncompressed bytes
	Encrypted      bool
	Directory      bool
	Symlink        bool // its content is a path; never followed, never a page
}
