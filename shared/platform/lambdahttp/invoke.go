package lambdahttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambda"
)

// Handler handles one invocation that is not an HTTP request. It gets a payload and returns a value that is sent as
// JSON. Its context ends when the invocation's time is up.
type Handler func(ctx context.Context, payload json.RawMessage) (any, error)

// Invoke passes every invocation to handle. It needs the Lambda runtime (InLambda). after may be nil. A panic fails the
// invocation, but not the following ones.
func Invoke(handle Handler, after After) error {
	if !InLambda() {
		return errors.New("AWS_LAMBDA_RUNTIME_API is not set: this program must run in AWS Lambda")
	}
	lambda.Start(func(ctx context.Context, payload json.RawMessage) (out any, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			bounded(ctx, after, longAfter)
		}()
		return handle(identified(ctx), payload)
	})
	return nil
}
