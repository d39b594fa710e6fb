// Package media wires functions/media: page images, covers and files. It links libvips.
package media

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/domain/content"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/rendition"
	"github.com/longbox/longbox/shared/format/archive"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// Config of the function.
type Config struct {
	app.HTTPConfig
	Images   imaging.Config
	Archives archive.Limits
}

// New makes the function's router.
func New(c Config) (*httpapi.API, *app.Base, error) {
	if err := c.Images.Validate(); err != nil {
		return nil, nil, err
	}
	base, err := app.NewBase(c.Config)
	if err != nil {
		return nil, nil, err
	}
	a, _, err := base.Router(c.HTTPConfig)
	if err != nil {
		return nil, nil, err
	}
	Routes(a, base, imaging.New(c.Images), c.Archives)
	return a, base, nil
}

// Routes adds the image and file operations.
func Routes(a *httpapi.API, base *app.Base, renderer *imaging.Renderer, limits archive.Limits) {
	reader := &content.Reader{Store: base.Library, Limits: limits}
	pages := page.NewServer(page.Server{Finder: page.NewFinder(base.Database), Content: reader, Media: base.Media, Bucket: base.Bucket})
	maker := &rendition.Maker{Database: base.Database, Content: reader, Pages: pages, Media: base.Media, Bucket: base.Bucket,
		Renderer: renderer, Redis: base.Redis}
	rendition.Routes(a, maker, pages)
}
