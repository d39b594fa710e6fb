package naming

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: together they take four milliseconds, which is
// more than the start of a function that reads no names.
type pattern struct {
	source string
	once   sync.Once
	re     *regexp.Regexp
}

func lazily(source string) *pattern { return &pattern{source: source} }

func (p *pattern) compiled() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.source) })
	return p.re
}

// String is the expression.
func (p *pattern) String() string { return p.source }

// The methods are those of regexp.Regexp.

func (p *pattern) MatchString(s string) bool            { return p.compiled().MatchString(s) }
func (p *pattern) FindString(s string) string           { return p.compiled().FindString(s) }
func (p *pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }
func (p *pattern) FindStringSubmatchIndex(s string) []int {
	return p.compiled().FindStringSubmatchIndex(s)
}

// find is FindStringSubmatchIndex where the text may match at all.
func (p *pattern) find(may bool, s string) []int {
	if !may {
		return nil
	}
	return p.FindStringSubmatchIndex(s)
}

func (p *pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringIndex(s, n)
}
func (p *pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringSubmatchIndex(s, n)
}
func (p *pattern) ReplaceAllString(s, by string) string { return p.compiled().ReplaceAllString(s, by) }
