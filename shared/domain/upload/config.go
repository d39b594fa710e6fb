package upload

import (
	"fmt"
	"time"
)

// Config limits uploads.
type Config struct {
	MaxBytes    int64         `env:"UPLOAD_MAX_BYTES" envDefault:"4294967296"`  // of one file; 0: no uploads
	SingleBytes int64         `env:"UPLOAD_SINGLE_BYTES" envDefault:"67108864"` // larger files are multipart uploads
	Life        time.Duration `env:"UPLOAD_LIFE" envDefault:"5m"`               // of an address
}

// The limits of S3, and of one response.
const (
	maxSingle   = 5 << 30   // bytes of one PUT
	maxObject   = 800 << 30 // bytes of an object: more would need parts of more than 5 GiB, which S3 rejects
	minPart     = 16 << 20  // bytes of a part
	maxParts    = 1000      // addresses in one response; a file has at most a fifth of them
	maxBegun    = 20        // multipart uploads per request
	maxOpen     = 1000      // multipart uploads per tenant
	maxSideFile = 20 << 20  // bytes of a file beside books
	openFor     = 24 * time.Hour
	undoWithin  = 10 * time.Second

	abandonWithin = 5 * time.Second // for the deletion of a library or tenant
	retryAfter    = 2 * time.Second // if the store fails
)

// Validate names the setting that is out of bounds.
func (c Config) Validate() error {
	switch {
	case c.MaxBytes < 0 || c.MaxBytes > maxObject:
		return fmt.Errorf("UPLOAD_MAX_BYTES: must be 0 (no uploads) to %d, is %d", int64(maxObject), c.MaxBytes)
	case c.SingleBytes < 1 || c.SingleBytes > maxSingle:
		return fmt.Errorf("UPLOAD_SINGLE_BYTES: must be 1 to %d, is %d", int64(maxSingle), c.SingleBytes)
	case c.Life < time.Second || c.Life > 5*time.Minute:
		return fmt.Errorf("UPLOAD_LIFE: must be 1s to 5m, is %s", c.Life)
	}
	return nil
}

// partSize returns the size of all parts but the last: 16 MiB, doubled until the file has at most a fifth of maxParts
// parts.
func partSize(size int64) int64 {
	n := int64(minPart)
	for (size+n-1)/n > maxParts/5 {
		n *= 2
	}
	return n
}
