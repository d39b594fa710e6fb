package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
)

// resourceEvent tells whether an invocation comes from CloudFormation, for the resource Schema of template.yaml.
func resourceEvent(payload json.RawMessage) (cfn.Event, bool) {
	var e cfn.Event
	err := json.Unmarshal(payload, &e)
	return e, err == nil && e.RequestType != "" && e.ResponseURL != ""
}

// margin is how long before the end of the invocation a migration ends, so that CloudFormation hears why. Without an
// answer it waits for an hour, while what it takes back meets another attempt to migrate.
const margin = 20 * time.Second

// resource migrates when the stack is made or updated, and tells CloudFormation how it went: the functions that need
// the schema wait for it. Nothing is undone when the stack goes, or goes back to older code.
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
