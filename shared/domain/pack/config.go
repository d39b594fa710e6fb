package pack

import "fmt"

// When page packs are made.
const (
	OnRead = "read"  // when a page is first requested
	AtScan = "scan"  // after the analysis
	Never  = "never" // every page is read from its book
)

// Config says when page packs are made.
type Config struct {
	Made string `env:"PAGE_PACKS" envDefault:"read"`
}

// Validate names the invalid setting.
func (c Config) Validate() error {
	switch c.Made {
	case OnRead, AtScan, Never, "":
		return nil
	}
	return fmt.Errorf("PAGE_PACKS: must be %s, %s or %s, is %q", OnRead, AtScan, Never, c.Made)
}
