package infra_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"
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

// A database that may pause gets the time to do so between two questions of the relay about the same listener: idle
// connections must end first, and then nobody may connect for a while.
func TestDatabasePausesWhileSomebodyListens(t *testing.T) {
	t.Parallel()
	number := func(n node) int {
		v, err := strconv.Atoi(n.text())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	database := read(t, "infra/database.yaml")
	idle := database.get("Resources", "ClusterSettings", "Properties", "Parameters", "idle_session_timeout").chosen(true)
	needed := time.Duration(number(idle))*time.Millisecond + time.Duration(number(database.get("Parameters", "PauseAfter", "Default")))*time.Second
	age, err := time.ParseDuration(read(t, "template.yaml").get("Resources", "Relay", "Properties", "Parameters", "AccessMaxAge").chosen(true).text())
	if err != nil || age <= needed {
		t.Errorf("the relay asks again after %s, %v: want more than %s", age, err, needed)
	}
}
