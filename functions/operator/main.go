// Command operator creates, suspends, limits, exports and deletes tenants. It is a Lambda function that only IAM may
// invoke, or a command.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/operator"
	command "github.com/longbox/longbox/shared/domain/operator"
	"github.com/longbox/longbox/shared/platform/lambdahttp"
)

func main() {
	app.Main("operator", operator.New, func(_ operator.Config, o *command.Operator, base *app.Base) error {
		if lambdahttp.InLambda() {
			return lambdahttp.Invoke(o.Invoke, base.Flush)
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		record, err := o.Run(ctx, os.Args[1:])
		if help := command.Asked(""); errors.As(err, &help) {
			fmt.Println(help)
			return nil
		}
		if err != nil {
			return err
		}
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		return out.Encode(record)
	})
}
