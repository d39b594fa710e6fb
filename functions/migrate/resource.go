package main

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/cfn"
)

// resourceEvent tells whether an invocation comes from CloudFormation, for the resource Schema of template.yaml.
func resourceEvent(payload json.RawMessage) (cfn.Event, bool) {
	var e cfn.Event
	err := json.Unmarshal(payload, &e)
	return e, err == nil && e.RequestType != "" && e.ResponseURL != ""
}

// resource migrates when the stack is made or updated, and tells CloudFormation how it went: the functions that need
// the schema wait for it. Nothing is undone when the stack goes, or goes back to older code.
func resource(ctx context.Context, c config, e cfn.Event) (any, error) {
	return cfn.LambdaWrap(func(ctx context.Context, e cfn.Event) (string, map[string]any, error) {
		if e.RequestType == cfn.RequestDelete {
			return e.PhysicalResourceID, nil, nil
		}
		done, err := migrate(ctx, c)
		return "schema", map[string]any{"SchemaVersion": done.Version}, err
	})(ctx, e)
}
