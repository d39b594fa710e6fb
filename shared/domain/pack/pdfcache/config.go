package pdfcache

import "fmt"

// Config tells whether page packs are made at all. It is that of package pack, which this one does not link.
type Config struct {
	Made string `env:"PAGE_PACKS" envDefault:"read"`
}

const never = "never" // pack.Never

// Validate names the invalid setting.
func (c Config) Validate() error {
	switch c.Made {
	case "read", "scan", never, "":
		return nil
	}
	return fmt.Errorf("PAGE_PACKS: must be read, scan or never, is %q", c.Made)
}
