package infra_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every alarm has a section in docs/alarms.md that says what to do, and every section is about existing alarms.
func TestEveryAlarmHasASection(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/alarms.md")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(string(page), -1) {
		for name := range strings.SplitSeq(heading[1], ", ") {
			described[name] = true
		}
	}
	alarms := read(t, "infra/alarm.yaml").resources("AWS::CloudWatch::Alarm")
	if len(alarms) < 15 {
		t.Fatalf("only %d alarms found", len(alarms))
	}
	for name, a := range alarms {
		if !described[name] {
			t.Errorf("infra/alarm.yaml has %s; say in docs/alarms.md, under a heading with its name, what to do", name)
		}
		delete(described, name)
		if a.get("AlarmActions").Node == nil || a.get("AlarmDescription").text() == "" {
			t.Errorf("%s tells nobody, or not what it is about", name)
		}
	}
	for name := range described {
		t.Errorf("docs/alarms.md has a section about %s, which is no alarm", name)
	}
}
