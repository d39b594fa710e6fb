// Package media wires functions/media: page images, covers, files and their contents. It links libvips.
package media

import (
	"errors"
	"runtime"
	"time"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/books"
	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/orphan"
	"github.com/longbox/longbox/shared/domain/pack"
	"github.com/longbox/longbox/shared/domain/page"
	"github.com/longbox/longbox/shared/domain/rendition"
	"github.com/longbox/longbox/shared/domain/webpub"
	"github.com/longbox/longbox/shared/format/imaging"
	"github.com/longbox/longbox/shared/platform/cdn"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
	"github.com/longbox/longbox/shared/platform/turn"
)

// Config of the function.
type Config struct {
	app.HTTPConfig
	books.Reading
	CDN cdn.Config
}

// maxStreamed limits the file bytes in one response of a Lambda function. Lambda ends a response at 200 MB
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-response-streaming.html), and an archive adds some bytes.
const maxStreamed = 190 << 20

// New builds the router of the function.
func New(c Config) (*httpapi.API, *app.Base, error) {
	if err := errors.Join(c.Reading.Validate(), c.CDN.Validate()); err != nil {
		return nil, nil, err
	}
	return app.Wire(c.Config, func(base *app.Base) (*httpapi.API, error) {
		a, _, err := base.Router(c.HTTPConfig)
		if err != nil {
			return nil, err
		}
		return a, Routes(a, base, imaging.New(c.Images), c)
	})
}

// coverPatience is how long a request waits for a cover that must be drawn; zero is the default. After its answer, a
// Lambda instance is frozen with the rest of the work, and it has no other requests. So it waits nearly as long as
// CloudFront does.
func coverPatience() time.Duration {
	if lambdahttp.InLambda() {
		return 45 * time.Second
	}
	return 0
}

// Routes adds the image and file operations, and the endpoints that the CDN calls when it delivers pages.
func Routes(a *httpapi.API, base *app.Base, renderer *imaging.Renderer, c Config) error {
	reader := c.Reader(base.Library)
	pages := page.NewServer(page.Server{Finder: page.NewFinder(base.Database), Content: reader, Media: base.Media, Bucket: base.Bucket,
		Renew: &page.Renewer{Database: base.Database, Added: base.Added}})
	if lambdahttp.InLambda() {
		pages.MaxArchive = maxStreamed
	}
	if c.Packs.Made != pack.Never {
		pages.Want = (&pack.Requester{Database: base.Database, Added: base.Added}).Want
	}
	maker := &rendition.Maker{Database: base.Database, Content: reader, Pages: pages, Media: base.Media, Bucket: base.Bucket,
		Renderer: renderer, Redis: base.Redis, Patience: coverPatience(),
		Turns: turn.Shares{Tenants: turn.Turns{Beside: int64(max(1, runtime.GOMAXPROCS(0)/2))}}} // so that another tenant finds a CPU
	delivery := rendition.Direct(maker, pages)
	if c.CDN.Delivery == cdn.Redirect {
		signer, err := cdn.NewSigner(c.CDN, time.Now)
		if err != nil {
			return err
		}
		delivery = rendition.Redirect(signer, time.Now)
		rendition.NewOrigin(maker, pages, c.CDN.Origin).Routes(a)
	}
	page.Routes(a, pages)
	rendition.Routes(a, maker, pages, delivery)
	webpub.Routes(a, base.Database, pages)
	orphan.StatsRoutes(a, &orphan.Finder{Database: base.Database, Media: base.Media, Bucket: base.Bucket})
	export.FileRoutes(a, base.Database, base.Media, base.Bucket, pages.MaxArchive)
	return nil
}
