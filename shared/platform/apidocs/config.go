package apidocs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/longbox/longbox/shared/lazyregexp"
)

// Config says whether the API description is served, and at which path besides /api/docs.
type Config struct {
	Enabled bool   `env:"API_DOCS" envDefault:"false"`
	Path    string `env:"API_DOCS_PATH" envDefault:"/docs"`
}

var pathShape = lazyregexp.New(`^(/[A-Za-z0-9_-]+)+$`)

// Validate returns an error that names the setting out of bounds.
func (c Config) Validate() error {
	switch {
	case !pathShape.MatchString(c.Path):
		return fmt.Errorf("API_DOCS_PATH: must be a path such as /docs, of letters, digits, - and _; is %q", c.Path)
	case c.Path == "/health" || c.Path == "/verify-email" || strings.HasPrefix(c.Path+"/", "/api/v1/") ||
		strings.HasPrefix(c.Path+"/", "/opds/"), strings.HasPrefix(c.Path+"/", "/koreader/"):
		return errors.New("API_DOCS_PATH: must not be a path that the API uses")
	}
	return nil
}
