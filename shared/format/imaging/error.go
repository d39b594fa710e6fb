package imaging

import "fmt"

// Undecodable means that the source is not an image that can be rendered: a refused type, an invalid header or invalid
// pixels (HTTP 422).
type Undecodable struct {
	MediaType string // "" when the type is unknown
	Cause     error
}

func (e *Undecodable) Error() string {
	if e.MediaType == "" {
		return fmt.Sprintf("image cannot be decoded: %v", e.Cause)
	}
	return fmt.Sprintf("%s cannot be decoded: %v", e.MediaType, e.Cause)
}

func (e *Undecodable) Unwrap() error { return e.Cause }

// TooLarge means that a source exceeds a limit (HTTP 422; the original can still be served).
type TooLarge struct {
	Limit      string // "bytes", "pixels" or "memory"
	Value, Max int64
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("image is too large to render: %d %s, the limit is %d", e.Value, e.Limit, e.Max)
}

// Busy means that too many renders are waiting (HTTP 503 with Retry-After).
type Busy struct{ Waiting int }

func (e *Busy) Error() string {
	return fmt.Sprintf("%d renders are waiting already: try again in a moment", e.Waiting)
}
