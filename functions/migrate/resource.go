package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
)

// resourceEvent reports whether CloudFormation sent the invocation, for the resource Schema of template.yaml.
func resourceEvent(payload json.RawMessage) (cfn.Event, bool) {
	var e cfn.Event
	err := json.Unmarshal(payload, &e)
	return e, err == nil && e.RequestType != "" && e.ResponseURL != ""
}

// margin is the time between the end of a migration and the end of the invocation, so that CloudFormation gets an
// error. Without a response it waits for an hour, and its rollback meets another attempt to migrate.
const margin = 20 * time.Second

// resource migrates when the stack is created or updated, and reports the result to CloudFormation. The functions that
// need the schema wait for it. Nothing is undone when the stack is deleted or rolled back.
func resource(ctx context.Context, c config, e cfn.Event) (any, error) {
	return cfn.LambdaWrap(func(ctx context.Context, e cfn.Event) (string, map[string]any, error) {
		if e.RequestType == cfn.RequestDelete {
			return e.PhysicalResourceID, nil, nil
		}
		if end, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end.Add(-margin))
			defer cancel()
		}
		done, err := migrate(ctx, c)
		return "schema", map[string]any{"SchemaVersion": done.Version}, err
	})(ctx, e)
}
