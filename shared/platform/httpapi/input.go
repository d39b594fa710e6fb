package httpapi

import "github.com/google/uuid"

// IDInput is the {id} of a path. Inputs embed it.
type IDInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}

// OptionalID returns the id of a validated query parameter, nil if it was not sent.
func OptionalID(s string) *uuid.UUID {
	id, err := uuid.Parse(s)
	if err != nil {
		return nil
	}
	return &id
}
