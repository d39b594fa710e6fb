// Package books wires how books are read, for functions/media and functions/worker. It links libvips.
package books

import (
	"errors"

	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/epub"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/format/pdf"
	"github.com/longbox/longbox/shared/format/pdfdraw"
	"github.com/longbox/longbox/shared/platform/blob"
)

// Reading is what a program that reads books needs.
type Reading struct {
	Images       imaging.Config
	Archives     archive.Limits
	Documents    pdf.Limits
	Publications epub.Limits
	Drawing      pdfdraw.Config
	Packs        pack.Config
}

// Validate names the settings that are out of their bounds.
func (c Reading) Validate() error {
	return errors.Join(c.Images.Validate(), c.Archives.Validate(), c.Documents.Validate(), c.Publications.Validate(), c.Drawing.Validate(), c.Packs.Validate())
}

// Reader reads the books of a store.
func (c Reading) Reader(library *blob.Store) *content.Reader {
	return &content.Reader{Store: library, Limits: c.Archives, Documents: c.Documents, Publications: c.Publications, Draw: pdfdraw.New(c.Drawing).Draw}
}
