package cover

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/blob"
)

// Settings are columns for any query of a tenant: the size and quality of covers.
var Settings = setting.SQL(setting.ThumbnailDimension) + "::integer as cover_size, " + setting.SQL(setting.ThumbnailQuality) + "::integer as cover_quality"

// Kind is what the keys of covers have behind the tenant.
const Kind = "cover"

// Key is the object of the media bucket that holds a cover of a book, or of a series that shows a picture of its own:
//
//	<tenant>/cover/<book or series>/<mac>/<size>-<quality>.jpeg
func Key(tenant, of uuid.UUID, secret []byte, fingerprint string, size, quality int) string {
	form := Form(size, quality)
	return Folder(tenant) + of.String() + "/" + MAC(secret, Kind+form, of, fingerprint) + "/" + form
}

// Folder is what all covers of a tenant lie below.
func Folder(tenant uuid.UUID) string { return tenant.String() + "/" + Kind + "/" }

// PageKind is what the MAC of smaller pages is of.
const PageKind = "page"

// PagesFolder is what all smaller pages of a book lie below, in the content that it has.
func PagesFolder(tenant, book uuid.UUID, secret []byte, fingerprint string) string {
	return blob.Expiring + tenant.String() + "/" + book.String() + "/" + MAC(secret, PageKind, book, fingerprint)
}

// Form is the last part of a key: how the cover is made.
func Form(size, quality int) string { return fmt.Sprintf("%d-%d.jpeg", size, quality) }

// MAC is the part of a key that nobody can say without the tenant's secret: of covers and pages.
func MAC(secret []byte, what string, of uuid.UUID, fingerprint string) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s|%s|%s", what, of, fingerprint)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// OwnerOf is the book or series that a key of the tenant's covers is of; false for a key that Key does not write.
func OwnerOf(tenant uuid.UUID, key string) (uuid.UUID, bool) {
	rest, ok := strings.CutPrefix(key, Folder(tenant))
	part := strings.Split(rest, "/")
	if !ok || len(part) != 3 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(part[0])
	return id, err == nil && id.String() == part[0]
}
