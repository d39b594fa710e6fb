package worker

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/longbox/longbox/shared/app"
)

// Handler makes what answers an invocation of the worker in Lambda: one payload (a batch of messages) in, the
// answer for the runtime out. The context ends with the invocation's time.
func Handler(c Config) (handle func(ctx context.Context, payload json.RawMessage) (any, error), base *app.Base, err error) {
	_, base, err = New(c)
	if err != nil {
		return nil, nil, err
	}
	return func(context.Context, json.RawMessage) (any, error) {
		return nil, errors.New("this build of the worker knows no queue yet")
	}, base, nil
}
