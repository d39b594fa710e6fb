package rendition

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/blob"
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
	return tenant.String() + "/cover/" + name(secret, fmt.Sprintf("%s|cover|%d|%d", fingerprint, c.MaxDimension, c.Quality))
}

func pageKey(tenant uuid.UUID, secret []byte, fingerprint string, n int, s imaging.Spec) string {
	return blob.Expiring + tenant.String() + "/" + name(secret, fmt.Sprintf("%s|page|%d|%d|%d|%s", fingerprint, n, s.Width, s.Height, s.Format))
}

func name(secret []byte, what string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(what))
	sum := hex.EncodeToString(mac.Sum(nil))
	return sum[:2] + "/" + sum
}
