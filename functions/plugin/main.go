// Command plugin runs plugins, which are third-party programs that know about books. As a Lambda function it is
// invoked; as a server it needs its token. It has no access to the data of Longbox.
package main

import (
	"log/slog"
	"os"

	"github.com/longbox/longbox/shared/app/plugin"
	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	lambdahttp.Main("plugin", func() error {
		c, err := environ.Parse[plugin.Config]()
		if err != nil {
			return err
		}
		slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.LogLevel})))
		f, err := plugin.New(c)
		if err != nil {
			return err
		}
		if lambdahttp.InLambda() {
			return lambdahttp.Invoke(f.Invoke, nil)
		}
		h, err := f.Handler()
		if err != nil {
			return err
		}
		return lambdahttp.Beside(h, f.Host.Run)
	})
}
