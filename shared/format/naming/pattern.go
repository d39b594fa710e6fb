package naming

import "github.com/longbox/longbox/shared/lazyregexp"

type pattern = lazyregexp.Regexp

func lazily(source string) *pattern { return lazyregexp.New(source) }

// find returns the match of an expression. may is a cheap check whether a match is possible.
func find(p *pattern, may bool, s string) []int {
	if !may {
		return nil
	}
	return p.FindStringSubmatchIndex(s)
}
