// Command worker scans libraries and analyses books: as a Lambda function the tasks that messages name, else those of
// the task table until it is stopped; then it gives back what it has not finished.
package main

import (
	"os"
	"runtime/debug"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/platform/environ"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

// enough is the GOMEMLIMIT of a worker that is given none: above it the collector works more often, so that the few
// books that need much (a large PDF) do not take five times of it.
const enough = 96 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(enough)
	}
	lambdahttp.Main("worker", func() error {
		if err := app.SetupLog(); err != nil {
			return err
		}
		c, err := environ.Parse[worker.Config]()
		if err != nil {
			return err
		}
		runner, base, err := worker.New(c)
		if err != nil {
			return err
		}
		defer base.Close()
		if lambdahttp.InLambda() {
			return lambdahttp.Invoke(runner.Handle, base.Flush)
		}
		return lambdahttp.Beside(app.Health(base), runner.Run)
	})
}
