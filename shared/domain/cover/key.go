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

// Settings are columns for any query in a tenant: the size and quality of covers.
var Settings = setting.SQL(setting.ThumbnailDimension) + "::integer as cover_size, " + setting.SQL(setting.ThumbnailQuality) + "::integer as cover_quality"

// Print is SQL for what identifies the cover in the file of book b, as analysis.Result.CoverPrint does; p is the book's
// page_index, if any.
const Print = `(b.fingerprint || case when b.fingerprint <> '' and p.cover_offset is not null and p.offsets <> '{}'
	then '-' || p.cover_crc || '-' || p.cover_size else '' end)`

// Kind follows the tenant in the keys of covers.
const Kind = "cover"

// Key returns the key, in the media bucket, of the cover of a book, or of a series that shows its own picture:
//
//	<tenant>/cover/<book or series>/<mac>/<size>-<quality>.jpeg
func Key(tenant, of uuid.UUID, secret []byte, fingerprint string, size, quality int) string {
	form := Form(size, quality)
	return Folder(tenant) + of.String() + "/" + MAC(secret, Kind+form, of, fingerprint) + "/" + form
}

// Folder returns the prefix of all covers of a tenant.
func Folder(tenant uuid.UUID) string { return tenant.String() + "/" + Kind + "/" }

// PageKind goes into the MAC of page renditions.
const PageKind = "page"

// PagesFolder returns the prefix of all page renditions of a book with this content.
func PagesFolder(tenant, book uuid.UUID, secret []byte, fingerprint string) string {
	return blob.Expiring + tenant.String() + "/" + book.String() + "/" + MAC(secret, PageKind, book, fingerprint)
}

// Form returns the last part of a key: size and quality.
func Form(size, quality int) string { return fmt.Sprintf("%d-%d.jpeg", size, quality) }

// MAC returns the part of a key, of covers and pages, that cannot be computed without the tenant's secret.
func MAC(secret []byte, what string, of uuid.UUID, fingerprint string) string {
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s|%s|%s", what, of, fingerprint)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// OwnerOf returns the book or series of a key among the tenant's covers; false for a key that Key does not write.
func OwnerOf(tenant uuid.UUID, key string) (uuid.UUID, bool) {
	rest, ok := strings.CutPrefix(key, Folder(tenant))
	part := strings.Split(rest, "/")
	if !ok || len(part) != 3 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(part[0])
	return id, err == nil && id.String() == part[0]
}
