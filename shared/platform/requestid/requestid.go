// Package requestid carries the id under which the logs of other services know a request to those who write ours.
package requestid

import "context"

type key struct{}

// In is ctx with the id that whoever passed the request on gave it.
func In(ctx context.Context, id string) context.Context { return context.WithValue(ctx, key{}, id) }

// Of is that id, or "".
func Of(ctx context.Context) string { id, _ := ctx.Value(key{}).(string); return id }
