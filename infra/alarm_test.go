package infra_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
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

// Programs that go on in spite of an error fail no invocation and no health check: these alarms count lines of their
// logs. A line that the program no longer writes would count nothing.
func TestAlarmsCountLinesThatAreWritten(t *testing.T) {
	t.Parallel()
	subscriber, err := os.ReadFile("../sse-relay/relay/subscriber.go")
	if err != nil {
		t.Fatal(err)
	}
	var line struct{ Level string }
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Error("a task failed")
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	template := read(t, "infra/alarm.yaml")
	filters := template.resources("AWS::Logs::MetricFilter")
	for alarm, pattern := range map[string]string{
		"WorkerFailures": `{ $.level = "` + line.Level + `" }`,
		"RelayDeaf":      `{ $.msg = "the subscription to Redis broke; connecting again" }`,
	} {
		found := false
		for _, f := range filters {
			metric := f.get("MetricTransformations").list()[0]
			if metric.get("MetricName").text() == alarm {
				found = f.get("FilterPattern").text() == pattern
				a := template.get("Resources", alarm, "Properties")
				if a.get("MetricName").text() != alarm || a.get("Namespace").text() != metric.get("MetricNamespace").text() {
					t.Errorf("%s does not count what the filter finds", alarm)
				}
			}
		}
		if !found {
			t.Errorf("infra/alarm.yaml has no filter %s for %s", pattern, alarm)
		}
		if message := regexp.MustCompile(`msg = "(.+)"`).FindStringSubmatch(pattern); message != nil && !strings.Contains(string(subscriber), `s.log.Warn("`+message[1]+`"`) {
			t.Errorf("the relay does not write %q", message[1])
		}
	}
}

// The alarm about the memory of Redis counts the same cache, and knows the limit that the cache has.
func TestAFullCacheRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	template := read(t, "infra/alarm.yaml")
	metrics := template.get("Resources", "CacheFull", "Properties", "Metrics").list()
	if len(metrics) != 2 {
		t.Fatalf("CacheFull of infra/alarm.yaml has %d metrics, want the share and the bytes used", len(metrics))
	}
	metric := metrics[1].get("MetricStat", "Metric")
	if metric.get("MetricName").text() != "BytesUsedForCache" || metric.get("Namespace").text() != "AWS/ElastiCache" {
		t.Error("CacheFull of infra/alarm.yaml must count BytesUsedForCache")
	}
	if !strings.Contains(metrics[0].get("Expression").text(), "${CacheGigabytes} * 1000000000") {
		t.Error("CacheFull of infra/alarm.yaml must compare with CacheGigabytes")
	}
	if template.get("Resources", "CacheFull", "Properties", "Threshold").text() != "75" {
		t.Error("CacheFull of infra/alarm.yaml must tell at 75 %, before keys are evicted")
	}
}

// A scheduler that nothing invokes has no errors: its silence is what tells.
func TestASilentSchedulerRaisesAnAlarm(t *testing.T) {
	t.Parallel()
	a := read(t, "infra/alarm.yaml").get("Resources", "SchedulerSilent", "Properties")
	if a.get("MetricName").text() != "Invocations" || a.get("ComparisonOperator").text() != "LessThanThreshold" || a.get("TreatMissingData").text() != "breaching" {
		t.Error("SchedulerSilent of infra/alarm.yaml must count missing invocations")
	}
	// An hourly schedule invokes it at least once in two hours.
	if a.get("Period").text() != "3600" || a.get("EvaluationPeriods").text() != "2" {
		t.Error("SchedulerSilent must wait two hours: Schedule may be rate(1 hour)")
	}
}
