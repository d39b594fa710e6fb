// Command scheduler does what is due for every tenant: it gives lost tasks back, starts scheduled scans and clears away
// what has had its time. As a Lambda function it does one round for each event of its schedule.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	lambdahttp.Main("scheduler", func() error {
		c, err := app.Parse[scheduler.Config]()
		if err != nil {
			return err
		}
		s, base, err := scheduler.New(c)
		if err != nil {
			return err
		}
		defer base.Close()
		if lambdahttp.InLambda() {
			return lambdahttp.Invoke(s.Invoked, base.Flush)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		defer stop()
		failed := make(chan error, 1)
		go func() { failed <- lambdahttp.Listen(app.Health(base)) }()
		s.Run(ctx)
		return errors.Join(<-failed)
	})
}
