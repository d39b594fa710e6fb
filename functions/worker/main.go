// Command worker scans libraries and analyses books. As a Lambda function it takes tasks from messages. As a server it
// takes them from the task table until it is stopped, and then gives back the unfinished ones.
package main

import (
	"os"
	"runtime/debug"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/worker"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

// enough is the default GOMEMLIMIT of a worker. Above it the garbage collector runs more often, so that a book that
// needs much memory (a large PDF) does not take five times as much.
const enough = 96 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(enough)
	}
	app.Main("worker", worker.New, func(_ worker.Config, runner *worker.Worker, base *app.Base) error {
		if lambdahttp.InLambda() {
			return lambdahttp.Invoke(runner.Handle, base.Flush)
		}
		return lambdahttp.Beside(app.Health(base), runner.Run)
	})
}
