// Package lazyregexp has regular expressions that are compiled when they are first used. Those of the
// names of books alone take four milliseconds to compile, as long as the start of a function that reads no names.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression; its methods are those of regexp.Regexp. One that cannot be compiled panics when it is
// first used.
type Regexp struct {
	source string
	once   sync.Once
	re     *regexp.Regexp
}

// New returns the expression and costs nothing: as the value of a variable of a package it is made by the compiler.
func New(source string) *Regexp { return &Regexp{source: source} }

func (r *Regexp) compiled() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.source) })
	return r.re
}

// Match tells whether b has a match.
func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

// MatchString tells whether s has a match.
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// FindString is the text of the first match, "" where there is none.
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindStringIndex is where the first match begins and ends, nil where there is none.
func (r *Regexp) FindStringIndex(s string) []int { return r.compiled().FindStringIndex(s) }

// FindStringSubmatch is the first match and its groups, nil where there is none.
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// FindStringSubmatchIndex is where the first match and its groups begin and end, nil where there is none.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

// FindAllString are the texts of the first n matches, or of all with n of -1.
func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

// FindAllStringIndex is where the first n matches begin and end, or all with n of -1.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch are the first n matches with their groups, or all with n of -1.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is where the first n matches and their groups begin and end, or all with n of -1.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is s with each match replaced; by may name groups ($1).
func (r *Regexp) ReplaceAllString(s, by string) string { return r.compiled().ReplaceAllString(s, by) }

// ReplaceAllStringFunc is s with each match replaced by what by makes of it.
func (r *Regexp) ReplaceAllStringFunc(s string, by func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, by)
}
