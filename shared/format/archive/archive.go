// Package archive reads ZIP archives in an object store: the directory from the last bytes of the object, and an entry
// from one range of it.
//
// The package does no I/O itself. ReadDirectory gets the end of the archive and, if the directory is larger, fetches
// the rest once. An Entry knows its range (Offset, Length), so a page costs one request. archive/zip over ranged reads
// would cost about a hundred.
//
// Archives are untrusted: counts, sizes and offsets are checked against Limits and against each other before memory or
// time is spent on them. Names are cleaned for display and sorting; they are never used as a path.
package archive

import "github.com/longbox/longbox/shared/format/internal/limit"

// TailBytes is how many of an archive's last bytes are certain to hold its end record: the longest comment, the record
// itself and the two zip64 records (APPNOTE 4.3.14 to 4.3.16). They nearly always hold the whole directory too.
const TailBytes = 0xffff + endLen + locatorLen + end64Len

// Limits for an archive. A field that is zero or less means its default.
type Limits struct {
	Entries         int   `env:"ARCHIVE_MAX_ENTRIES" envDefault:"20000"`       // entries in the directory
	DirectoryBytes  int64 `env:"ARCHIVE_MAX_DIRECTORY" envDefault:"8388608"`   // size of the directory
	NameBytes       int   `env:"ARCHIVE_MAX_NAME" envDefault:"1024"`           // one name, as stored
	EntryBytes      int64 `env:"ARCHIVE_MAX_ENTRY" envDefault:"67108864"`      // one page or opened entry, uncompressed
	TotalBytes      int64 `env:"ARCHIVE_MAX_TOTAL" envDefault:"4294967296"`    // all entries together, uncompressed
	Ratio           int64 `env:"ARCHIVE_MAX_RATIO" envDefault:"200"`           // unpacked to packed; only above 64 MiB
	DictionaryBytes int64 `env:"ARCHIVE_MAX_DICTIONARY" envDefault:"67108864"` // dictionary of a decompressor
}

// ratioFloor is the total size below which the compression ratio is not checked: small books of blank pages or plain
// text compress extremely well.
const ratioFloor = 64 << 20

// Validate returns an error that names the first setting out of bounds. The zero value stands for the defaults.
func (l Limits) Validate() error { return limit.Check(l) }

// WithDefaults fills unset fields with limits that fit every real book known to us.
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

// Directory lists the entries of an archive.
type Directory struct {
	Entries []Entry // in directory order
	Size    int64   // of the archive, in bytes
	// Fingerprint identifies the content when the entries have no checksums.
	Fingerprint string
}

// Entry is one file or folder of an archive.
type Entry struct {
	Name           string // cleaned, UTF-8, '/' separated; for display and sorting, never a path
	Offset         int64  // of the local header, from the start of the archive
	Length         int64  // bytes from Offset to request: up to the next entry or the directory
	CompressedSize int64
	Size           int64  // uncompressed
	Method         uint16 // Stored, Deflated …, or the method for an entry of another container
	CRC32          uint32 // of the uncompressed bytes
	Encrypted      bool
	Directory      bool
	Symlink        bool // the content is a path; never followed, never a page
}
