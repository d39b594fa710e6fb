// Command media answers requests for page images, covers and files, as a Lambda function or as a server.
package main

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	lambdahttp.Main("media", func() error {
		if err := app.SetupLog(); err != nil {
			return err
		}
		c, err := environ.Parse[media.Config]()
		if err != nil {
			return err
		}
		a, base, err := media.New(c)
		if err != nil {
			return err
		}
		defer base.Close()
		return lambdahttp.Stream(a.Router, base.Flush)
	})
}
