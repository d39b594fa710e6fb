// Command api answers all JSON requests, as a Lambda function or as a server.
package main

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	lambdahttp.Main("api", func() error {
		if err := app.SetupLog(); err != nil {
			return err
		}
		c, err := environ.Parse[api.Config]()
		if err != nil {
			return err
		}
		a, base, err := api.New(c)
		if err != nil {
			return err
		}
		defer base.Close()
		handler := c.Origin.Guard(a.Router)
		if lambdahttp.InLambda() {
			handler = httpapi.Gzip(handler)
		}
		return lambdahttp.Serve(handler, base.Flush)
	})
}
