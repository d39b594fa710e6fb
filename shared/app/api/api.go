// Package api wires the slices of functions/api, which answers all JSON requests. It links no image library.
package api

import (
	"errors"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/domain/account"
	"github.com/longbox/longbox/shared/domain/apikey"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/catalog"
	"github.com/longbox/longbox/shared/domain/collection"
	"github.com/longbox/longbox/shared/domain/cover"
	"github.com/longbox/longbox/shared/domain/duplicate"
	"github.com/longbox/longbox/shared/domain/export"
	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/health"
	"github.com/longbox/longbox/shared/domain/komga"
	"github.com/longbox/longbox/shared/domain/koreader"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/metric"
	"github.com/longbox/longbox/shared/domain/oidc"
	"github.com/longbox/longbox/shared/domain/orphan"
	"github.com/longbox/longbox/shared/domain/pack/pdfcache"
	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/preference"
	"github.com/longbox/longbox/shared/domain/preset"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/rating"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/setup"
	"github.com/longbox/longbox/shared/domain/sharing"
	"github.com/longbox/longbox/shared/domain/starter"
	"github.com/longbox/longbox/shared/domain/statistic"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/domain/taxonomy"
	"github.com/longbox/longbox/shared/domain/telemetry"
	"github.com/longbox/longbox/shared/domain/upload"
	"github.com/longbox/longbox/shared/domain/wanted"
	"github.com/longbox/longbox/shared/platform/apidocs"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/mail"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/seal"
)

// Config of the function.
type Config struct {
	app.HTTPConfig
	Mail    mail.Config
	Uploads upload.Config
	Docs    apidocs.Config
	Origin  httpapi.Origin
	Plugins plug.Config
	Seal    seal.Config
	PDFs    pdfcache.Config

	Telemetry telemetry.Config
}

// New builds the router of the function.
func New(c Config) (*httpapi.API, *app.Base, error) {
	if err := errors.Join(c.Origin.Validate(), c.Uploads.Validate(), c.Plugins.Validate(), c.PDFs.Validate(), c.Telemetry.Validate()); err != nil {
		return nil, nil, err
	}
	return app.Wire(c.Config, func(base *app.Base) (*httpapi.API, error) {
		base.External = oidc.NewAskingBearer(base.Database, plug.New(c.Plugins))
		a, tokens, err := base.Router(c.HTTPConfig)
		if err != nil {
			return nil, err
		}
		sender, err := mail.New(c.Mail)
		if err != nil {
			return nil, err
		}
		key, err := seal.New(c.Seal)
		if err != nil {
			return nil, err
		}
		routes(a, base, tokens, sender, key, c)
		return a, apidocs.Routes(a, c.Docs)
	})
}

// routes adds every JSON operation.
func routes(a *httpapi.API, base *app.Base, tokens *auth.Tokens, sender mail.Sender, key *seal.Key, c Config) {
	d, plugins := base.Database, plug.New(c.Plugins)
	setup.Routes(a, d, tokens, base.Bump)
	account.Routes(a, d, tokens, base.Bump, sender, c.PublicURL)
	oidc.Routes(a, d, tokens, key, plugins, base.Publish, base.Bump)
	apikey.Routes(a, d, base.Bump)
	preference.Routes(a, d)
	setting.Routes(a, d, base.Bump)
	filesystem.Routes(a, d, base.Library)
	health.Routes(a, d)
	metric.Routes(a, d)
	task.Routes(a, d, base.Publish, base.Added)
	uploads := &upload.Uploader{Database: d, Store: base.Library, Config: c.Uploads}
	library.Routes(a, d, base.Publish, base.Library, base.Added, base.Bump, uploads.Abandon)
	scan.Routes(a, d, base.Publish, base.Added)
	uploads.Routes(a)
	series.Routes(a, d, base.Publish, base.Added)
	book.Routes(a, d, base.Publish, base.Added)
	taxonomy.Routes(a, d, base.Publish)
	reference.Routes(a, d, base.Publish)
	rating.Routes(a, d)
	statistic.Routes(a, d)
	preset.Routes(a, d)
	export.Routes(a, d, base.Added)
	orphan.Routes(a, d, base.Added)
	pdfcache.Routes(a, d, c.PDFs, base.Added)
	telemetry.Routes(a, d, c.Telemetry)
	sharing.Routes(a, d, base.Publish, base.Bump)
	cover.Routes(a, d, base.Publish, base.Added)
	duplicate.Routes(a, d, base.Added)
	progress.Routes(a, d)
	wanted.Routes(a, d)
	collection.Routes(a, d)
	catalog.Routes(a, d)
	komga.Routes(a, d, base.Added)
	koreader.Routes(a, d, base.Added)
	starter.Routes(a, d, base.Publish, base.Added)
	release.Routes(a, d, base.Publish, base.Added)
	plugin.Routes(a, d, plugins, key, base.Publish, base.Added)
}

// Describe builds the router without services behind it, for the OpenAPI description.
func Describe() *httpapi.API {
	a := httpapi.New(httpapi.Config{}, nil, nil, httpapi.Identity{})
	routes(a, &app.Base{}, nil, nil, nil, Config{})
	return a
}
