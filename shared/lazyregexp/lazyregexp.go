// Package lazyregexp provides regular expressions that are compiled on first use. Compiling those for book names alone
// takes four milliseconds, as long as the start of a function that reads no names.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression with the methods of regexp.Regexp. An invalid one panics on first use.
type Regexp struct {
	source string
	once   sync.Once
	re     *regexp.Regexp
}

// New returns the expression without compiling it. As a package variable it is initialised at compile time.
func New(source string) *Regexp { return &Regexp{source: source} }

func (r *Regexp) compiled() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.source) })
	return r.re
}

// Match reports whether b has a match.
func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

// MatchString reports whether s has a match.
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// Find returns the first match, or nil.
func (r *Regexp) Find(b []byte) []byte { return r.compiled().Find(b) }

// FindSubmatch returns the first match and its groups, or nil.
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

// FindString returns the first match, or "".
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindStringIndex returns start and end of the first match, or nil.
func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }

// FindStringSubmatch returns the first match and its groups, or nil.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// FindStringSubmatchIndex returns start and end of the first match and its groups, or nil.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

// FindAllString returns the first n matches, or all for n = -1.
func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

// FindAllStringIndex returns start and end of the first n matches, or of all for n = -1.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch returns the first n matches with their groups, or all for n = -1.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns start and end of the first n matches and their groups, or of all for n = -1.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString returns s with each match replaced. by may refer to groups ($1).
func (r *Regexp) ReplaceAllString(s, by string) string { return r.compiled().ReplaceAllString(s, by) }

// ReplaceAllStringFunc returns s with each match replaced by by's result.
func (r *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, by)
}

// ReplaceAll returns a copy of b with each match replaced.
func (r *Regexp) ReplaceAll(b, by []byte) []byte { return r.compiled().ReplaceAll(b, by) }

// ReplaceAllFunc returns a copy of b with each match replaced by what the function returns for it.
func (r *Regexp) ReplaceAllFunc(b []byte, by func([]byte) []byte) []byte {
	return r.compiled().ReplaceAllFunc(b, by)
}
