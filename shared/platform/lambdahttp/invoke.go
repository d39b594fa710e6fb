package lambdahttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambda"
)

// Handler answers one invocation that is no request: a payload in, an answer out that is sent as JSON. Its context
// ends when the invocation's time is up.
type Handler func(ctx context.Context, payload json.RawMessage) (any, error)

// Invoke gives every invocation to handle; it needs the Lambda runtime (InLambda). after may be nil. A panic fails the
// invocation and the next is taken all the same.
func Invoke(handle Handler, after After) error {
	if !InLambda() {
		return errors.New("AWS_LAMBDA_RUNTIME_API is not set: there is nothing to take invocations from")
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
