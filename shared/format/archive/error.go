package archive

import "fmt"

// Kind says what is wrong with a file, in a word that stays the same.
type Kind string

// The kinds of errors that this package returns.
const (
	NotArchive  Kind = "not_archive" // no ZIP at all
	Truncated   Kind = "truncated"   // the end, or what an entry announces, is missing
	Encrypted   Kind = "encrypted"   // needs a password
	Unsupported Kind = "unsupported" // a compression method or layout that is not read
	TooLarge    Kind = "too_large"   // a limit is exceeded
	Corrupt     Kind = "corrupt"     // contradicts itself
	NoPages     Kind = "no_pages"    // readable, but holds no image
)

// Error says what is wrong with a file in words for its owner. It never stands
// for trouble on the way to the file: errors of readers are passed on as is.
type Error struct {
	Kind Kind
	Msg  string
	Err  error // the cause, or nil
}

func (e *Error) Error() string { return e.Msg }

func (e *Error) Unwrap() error { return e.Err }

// Undrawn says that a page was not drawn for a reason that lies outside its file: there was no time, or what draws
// failed.
type Undrawn struct{ Err error }

func (e *Undrawn) Error() string { return "the page was not drawn: " + e.Err.Error() }

// Unwrap is the cause.
func (e *Undrawn) Unwrap() error { return e.Err }

// Is makes errors.Is(err, &Error{Kind: k}) true for every error of kind k.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Msg == "" || t.Msg == e.Msg)
}

// Errorf is an error of a kind, with a message for people.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

func tooLarge(what string, value, limit any) *Error {
	return Errorf(TooLarge, "%s: %v, the limit is %v", what, value, limit)
}
