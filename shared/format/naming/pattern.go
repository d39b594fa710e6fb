package naming

import "github.com/longbox/longbox/shared/lazyregexp"

type pattern = lazyregexp.Regexp

func lazily(source string) *pattern { return lazyregexp.New(source) }

// find is where an expression matches, where the text may match at all.
func find(p *pattern, may bool, s string) []int {
	if !may {
		return nil
	}
	return p.FindStringSubmatchIndex(s)
}
