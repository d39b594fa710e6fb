// Command scheduler does the periodic work of all tenants: it requeues lost tasks, starts scheduled scans and deletes
// expired data. As a Lambda function it does one round per event of its schedule.
package main

import (
	"context"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	app.Main("scheduler", scheduler.New, func(_ scheduler.Config, s *scheduler.Scheduler, base *app.Base) error {
		if lambdahttp.InLambda() {
			return lambdahttp.Invoke(s.Invoked, base.Flush)
		}
		return lambdahttp.Beside(app.Health(base), func(ctx context.Context) error { s.Run(ctx); return nil })
	})
}
