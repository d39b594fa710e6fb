package docs_test

import (
	"os"
	"strings"
	"testing"
)

// The unit of operator.md starts Longbox again until a late network disk is there, and keeps the rest running when the
// kernel kills one program for lack of memory.
func TestUnitOutlivesABoot(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("operator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, unit, _ := strings.Cut(string(page), "\n    [Unit]\n")
	unit, rest, _ := strings.Cut(unit, "\n    [Service]\n")
	service, _, found := strings.Cut(rest, "\n    [Install]\n")
	if !found {
		t.Fatal("operator.md has no unit with [Unit], [Service] and [Install]")
	}
	for section, lines := range map[string][]string{
		unit:    {"Wants=network-online.target", "After=network-online.target remote-fs.target", "StartLimitIntervalSec=0"},
		service: {"Restart=on-failure", "RestartSec=10", "OOMPolicy=continue"},
	} {
		for _, line := range lines {
			if !strings.Contains("\n"+section+"\n", "\n    "+line+"\n") {
				t.Errorf("the unit has no line %s in its section", line)
			}
		}
	}
}

// Links, sign-in at an identity provider and plugins need the host with its port, which nginx leaves out of $host.
func TestProxyPassesOnThePort(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("operator.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n        proxy_set_header Host $http_host;\n") {
		t.Error("the configuration of nginx does not pass on the Host that the client sent")
	}
}
