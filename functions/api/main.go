// Command api answers all JSON requests, as a Lambda function or as a server.
package main

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	app.Main("api", api.New, func(c api.Config, a *httpapi.API, base *app.Base) error {
		handler := c.Origin.Guard(a.Router)
		if lambdahttp.InLambda() {
			handler = httpapi.Gzip(handler)
		}
		return lambdahttp.Serve(handler, base.Flush)
	})
}
