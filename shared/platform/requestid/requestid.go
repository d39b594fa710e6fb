// Package requestid carries the id of a request in the logs of other services to our logs.
package requestid

import "context"

type key struct{}

// In returns ctx with the request id that the caller assigned.
func In(ctx context.Context, id string) context.Context { return context.WithValue(ctx, key{}, id) }

// Of returns that id, or "".
func Of(ctx context.Context) string { id, _ := ctx.Value(key{}).(string); return id }
