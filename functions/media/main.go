// Command media answers requests for page images, covers and files, as a Lambda function or as a server.
package main

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	app.Main("media", media.New, func(_ media.Config, a *httpapi.API, base *app.Base) error {
		return lambdahttp.Stream(a.Router, base.Flush)
	})
}
