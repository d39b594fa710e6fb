package rendition

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/imaging"
)

// Cover says how covers are made: the settings thumbnail.max_dimension and thumbnail.jpeg_quality.
type Cover struct {
	MaxDimension int `db:"cover_size"`
	Quality      int `db:"cover_quality"`
}

func (c Cover) spec() imaging.Spec {
	return imaging.Spec{Width: c.MaxDimension, Height: c.MaxDimension, Format: imaging.JPEG, Quality: c.Quality}
}

// CoverKey is the object that holds a cover.
func CoverKey(tenant uuid.UUID, secret []byte, fingerprint string, c Cover) string {
	return objectKey(tenant, "cover", secret, fmt.Sprintf("%s|cover|%d|%d", fingerprint, c.MaxDimension, c.Quality))
}

func pageKey(tenant uuid.UUID, secret []byte, fingerprint string, n int, s imaging.Spec) string {
	return objectKey(tenant, "page", secret, fmt.Sprintf("%s|page|%d|%d|%d|%s", fingerprint, n, s.Width, s.Height, s.Format))
}

func objectKey(tenant uuid.UUID, kind string, secret []byte, what string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(what))
	sum := hex.EncodeToString(mac.Sum(nil))
	return tenant.String() + "/" + kind + "/" + sum[:2] + "/" + sum
}
