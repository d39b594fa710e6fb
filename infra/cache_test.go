package infra_test

import (
	"regexp"
	"testing"
)

// The name of a cache starts with a letter, for any stack id, and has at most 40 characters.
func TestCacheNameBeginsWithALetter(t *testing.T) {
	t.Parallel()
	for name, cache := range read(t, "infra/cache.yaml").resources("AWS::ElastiCache::ServerlessCache") {
		n := cache.get("ServerlessCacheName")
		if n.Tag != "!Sub" || !regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}\$\{Id\}$`).MatchString(n.list()[0].text()) {
			t.Errorf("the name of %s is %s %q, which may begin with a digit", name, n.Tag, n.scalars())
		}
	}
}
