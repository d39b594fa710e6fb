package archive

import "fmt"

// Kind is the kind of a problem with a file. Its values are stable.
type Kind string

// Kinds of errors that this package returns.
const (
	NotArchive  Kind = "not_archive" // not a ZIP archive
	Truncated   Kind = "truncated"   // the end, or content that an entry announces, is missing
	Encrypted   Kind = "encrypted"   // needs a password
	Unsupported Kind = "unsupported" // a compression method or layout that is not supported
	TooLarge    Kind = "too_large"   // a limit is exceeded
	Corrupt     Kind = "corrupt"     // contradicts itself
	NoPages     Kind = "no_pages"    // readable, but without images
)

// Error describes a problem of a file for its owner. Errors of readers are never an Error; they are passed on
// unchanged.
type Error struct {
	Kind Kind
	Msg  string
	Err  error // the cause, or nil
}

func (e *Error) Error() string { return e.Msg }

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, &Error{Kind: k}) true for every error of kind k.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Msg == "" || t.Msg == e.Msg)
}

// Errorf returns an error of a kind, with a message for users.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

func tooLarge(what string, value, limit any) *Error {
	return Errorf(TooLarge, "%s: %v, the limit is %v", what, value, limit)
}

// Undrawn means that a page was not drawn for a reason outside its file: lack of time, or a failure of the renderer.
type Undrawn struct{ Err error }

func (e *Undrawn) Error() string { return "the page was not drawn: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Undrawn) Unwrap() error { return e.Err }
