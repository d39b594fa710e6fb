package setting_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const base = "/api/v1/admin/settings"

func serve(t *testing.T) (*testkit.Server, *atomic.Int64) {
	var bumps atomic.Int64
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		setting.Routes(a, d, func(context.Context, uuid.UUID) { bumps.Add(1) })
	})
	return s, &bumps
}

func TestChangeAndReset(t *testing.T) {
	t.Parallel()
	s, bumps := serve(t)
	admin := s.User(t, "one", "admin")
	before := admin.Do("GET", base+"/scanner.batch_size", nil).Want(200).Map()
	if before["value"] != "100" || before["version"] != 1.0 || before["updatedBy"] != nil || before["minValue"] != 10.0 ||
		!strings.HasSuffix(before["updatedAt"].(string), "Z") || strings.HasPrefix(before["updatedAt"].(string), "0001") {
		t.Errorf("default: %v", before)
	}
	got := admin.Do("PUT", base+"/scanner.batch_size", `{"value":"200","change_reason":"big books"}`).Want(200).Map()
	if got["value"] != "200" || got["version"] != 2.0 || got["updatedBy"] != admin.ID.String() || got["id"] != before["id"] {
		t.Errorf("changed: %v", got)
	}
	if got := admin.Do("PUT", base+"/scanner.batch_size", `{"value":300}`).Want(200).Map(); got["value"] != "300" || got["version"] != 3.0 {
		t.Errorf("number: %v", got)
	}
	if got := admin.Do("POST", base+"/scanner.batch_size/reset", nil).Want(200).Map(); got["value"] != "100" || got["version"] != 4.0 {
		t.Errorf("reset: %v", got)
	}
	if got := admin.Do("PUT", base+"/search.fuzzy.enabled", `{"value":true,"changeReason":null}`).Want(200).Map(); got["value"] != "true" {
		t.Errorf("boolean: %v", got)
	}
	if bumps.Load() != 4 {
		t.Errorf("%d bumps, want 4", bumps.Load())
	}
	m := admin.Do("GET", base+"/scanner.batch_size/history?page_size=2", nil).Want(200).Map()
	lines := m["data"].([]any)
	first, second := lines[0].(map[string]any), lines[1].(map[string]any)
	if m["total"] != 3.0 || len(lines) != 2 || first["oldValue"] != "300" || first["newValue"] != "100" || second["oldValue"] != "200" {
		t.Errorf("history: %v", m)
	}
	if first["settingId"] != before["id"] || first["changedBy"] != admin.ID.String() || first["ipAddress"] != "127.0.0.1" {
		t.Errorf("history line: %v", first)
	}
	last := admin.Do("GET", base+"/scanner.batch_size/history?page=3&pageSize=1", nil).Want(200).Map()["data"].([]any)[0].(map[string]any)
	if last["oldValue"] != "100" || last["changeReason"] != "big books" {
		t.Errorf("oldest line: %v", last)
	}
}

// Concurrent changes are serialized; the history is in the order of the changes, not of the requests.
func TestHistoryIsInTheOrderOfTheChanges(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	admin := s.User(t, "one", "admin")
	first, err := s.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(t.Context(), "select pg_advisory_xact_lock(hashtextextended('setting ' || $1::text, 0))", s.One); err != nil {
		t.Fatal(err)
	}
	done := make(chan *testkit.Response)
	go func() { done <- admin.Do("PUT", base+"/application.name", `{"value":"Second"}`) }()
	testkit.Eventually(t, time.Minute, func() (waits bool) {
		err := s.DB.Owner.Pool().QueryRow(t.Context(), `select exists (select from pg_locks where not granted and locktype = 'advisory'
			and pid in (select pid from pg_stat_activity where datname = current_database()))`).Scan(&waits)
		return err == nil && waits
	})
	var until time.Time
	if err := first.QueryRow(t.Context(), "select clock_timestamp()").Scan(&until); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed := (<-done).Want(200).Map()
	line := admin.Do("GET", base+"/application.name/history", nil).Want(200).Map()["data"].([]any)[0].(map[string]any)
	for what, at := range map[string]any{"updatedAt": changed["updatedAt"], "changedAt": line["changedAt"]} {
		if got, err := time.Parse(time.RFC3339Nano, at.(string)); err != nil || got.Before(until) {
			t.Errorf("%s is %v, before the change that it waited for (%v): %v", what, at, until, err)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	admin := s.User(t, "one", "admin")
	m := admin.Do("GET", base+"?pageSize=500", nil).Want(200).Map()
	if int(m["total"].(float64)) != len(m["data"].([]any)) || m["total"].(float64) < 25 {
		t.Errorf("total %v of %d", m["total"], len(m["data"].([]any)))
	}
	for _, x := range m["data"].([]any) {
		d := x.(map[string]any)
		if d["value"] != d["defaultValue"] || d["description"] == "" || d["category"] == "" {
			t.Errorf("%v", d)
		}
		// Every default must be a valid value.
		admin.Do("PUT", base+"/"+d["key"].(string), map[string]any{"value": d["defaultValue"]}).Want(200)
	}
	m = admin.Do("GET", base+"?category=authentication", nil).Want(200).Map()
	if m["total"] != 2.0 {
		t.Errorf("category: %v", m)
	}
}

func TestBadValues(t *testing.T) {
	t.Parallel()
	s, bumps := serve(t)
	admin := s.User(t, "one", "admin")
	for _, c := range []struct{ key, value, why string }{
		{"scanner.batch_size", `"9"`, "from 10 to 500"},
		{"scanner.batch_size", `501`, "from 10 to 500"},
		{"scanner.batch_size", `"ten"`, "whole number"},
		{"scanner.batch_size", `10.5`, "whole number"},
		{"search.fuzzy.enabled", `"yes"`, "true or false"},
		{"search.fuzzy.enabled", `1`, "true or false"},
		{"plugins.auto_match_confidence_threshold", `1.1`, "from 0 to 1"},
		{"plugins.auto_match_confidence_threshold", `"NaN"`, "from 0 to 1"},
		{"plugins.auto_match_confidence_threshold", `"0x1p-1"`, "from 0 to 1"},
		{"deduplication.cron_schedule", `"often"`, "cron"},
		{"deduplication.cron_schedule", `"61 * * * *"`, "cron"},
		{"metrics.task_retention_days", `"31"`, "one of disabled"},
		{"komga_api.prefix", `"opds"`, "other than api, cdn, health, koreader, opds"},
		{"komga_api.prefix", `"a/b"`, "lower-case letters"},
		{"komga_api.prefix", `"` + strings.Repeat("a", 65) + `"`, "64"},
		{"scheduler.timezone", `"Europe/Atlantis"`, "not known"},
		{"scheduler.timezone", `"Local"`, "not known"},
		{"scheduler.timezone", `""`, "empty"},
		{"release_tracking.default_languages", `"en"`, "JSON array"},
		{"release_tracking.default_languages", `"[1]"`, "JSON array"},
		{"release_tracking.default_languages", `"null"`, "JSON array"},
		{"release_tracking.default_languages", `"[\"en\",\"English\"]"`, "ISO 639-1"},
		{"release_tracking.notify_languages", `"[\"E1\"]"`, "ISO 639-1"},
		{"duplicate_detection.trusted_external_id_sources", `"[\"plugin:a\\u0000\"]"`, "control"},
		{"release_tracking.notify_plugins", `"[\"plugin:\\u2067a\"]"`, "direction"},
		{"release_tracking.notify_plugins", `"[\"\"]"`, "1 to 200"},
		{"release_tracking.notify_plugins", `"[\"` + strings.Repeat("é", 201) + `\"]"`, "1 to 200"},
		{"release_tracking.notify_plugins", `"[` + strings.Repeat(`\"a\",`, 200) + `\"a\"]"`, "at most 200"},
		{"application.name", `"  "`, "empty"},
		{"application.name", `"a\nb"`, "control"},
		{"application.name", `"a\u2067b"`, "direction"},
		{"application.name", `"` + strings.Repeat("é", 101) + `"`, "at most 100"},
		{"application.name", `"a\u0000b"`, "NUL"},
		{"application.name", `null`, "value"},
		{"application.name", `{}`, "value"},
		{"tasks.retention_days", `0`, "from 1 to 365"},
	} {
		m := admin.Do("PUT", base+"/"+c.key, `{"value":`+c.value+`}`).Want(400).Map()
		if !strings.Contains(m["message"].(string), c.why) || m["details"].([]any)[0].(map[string]any)["field"] != "value" {
			t.Errorf("%s %s: %v", c.key, c.value, m)
		}
	}
	admin.Do("PUT", base+"/application.name", `{}`).Want(400)
	admin.Do("PUT", base+"/application.name", `{"value":"x","changeReason":"`+strings.Repeat("x", 501)+`"}`).Want(400)
	for _, path := range []string{"/nothing", "/application.name.x"} {
		admin.Do("GET", base+path, nil).Want(404)
		admin.Do("PUT", base+path, `{"value":"x"}`).Want(404)
		admin.Do("POST", base+path+"/reset", nil).Want(404)
		admin.Do("GET", base+path+"/history", nil).Want(404)
	}
	if bumps.Load() != 0 {
		t.Errorf("%d bumps", bumps.Load())
	}
	if m := admin.Do("PUT", base+"/plugins.auto_match_confidence_threshold", `{"value":"-0"}`).Want(200).Map(); m["value"] != "0" {
		t.Errorf("minus nothing is %v", m["value"])
	}
}

func TestBulk(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	admin := s.User(t, "one", "admin")
	m := admin.Do("POST", base+"/bulk", `{"settings":{"scanner.batch_size":20,"nothing":"1","application.name":""},"changeReason":"r"}`).Want(400).Map()
	if d := m["details"].([]any); len(d) != 2 {
		t.Errorf("details: %v", d)
	}
	if m := admin.Do("GET", base+"/scanner.batch_size", nil).Want(200).Map(); m["value"] != "100" {
		t.Errorf("a failed bulk update changed something: %v", m)
	}
	for i, body := range []string{
		`{"settings":{"scanner.batch_size":20,"application.name":"Mine"},"changeReason":"r"}`,
		`{"settings":[{"key":"scanner.batch_size","value":"20"},{"key":"application.name","value":"Mine"}]}`,
		`{"updates":[{"key":"scanner.batch_size","value":"20"},{"key":"application.name","value":"Mine"}]}`,
	} {
		m := admin.Do("POST", base+"/bulk", body).Want(200).Map()
		if m["total"] != 2.0 || m["data"].([]any)[0].(map[string]any)["version"] != float64(i+2) {
			t.Errorf("%s: %v", body, m)
		}
	}
	const types = "must be a string of at most 64 KiB, a number, true or false"
	for body, want := range map[string]string{`{}`: "settings: is required", `{"settings":{}}`: "settings: is required", `{"settings":[]}`: "settings: is required",
		`{"settings":"x"}`: "settings: is required", `{"settings":null}`: "settings: is required", `{"updates":[5]}`: "updates: is required",
		`{"settings":{"application.name":"a"},"updates":[5]}`: "updates: is required",
		`{"settings":{"application.name":null}}`:              "settings.application.name: " + types, `{"settings":{"application.name":[1]}}`: "settings.application.name: " + types,
		`{"settings":[{"key":"application.name","value":"a"},{"key":"application.name","value":"b"}]}`: "settings.application.name: is sent twice",
		`{"settings":{"application.name":"a"},"updates":{"application.name":"b"}}`:                     "updates.application.name: is sent twice",
		`{"settings":[{"key":"application.name"}]}`:                                                    "settings.application.name: " + types,
		`{"updates":[{"key":"nothing","value":"a"}]}`:                                                  "updates.nothing: there is no setting",
		`{"updates":{"application.name":"` + strings.Repeat("x", 64<<10+1) + `"}}`:                     "updates.application.name: " + types} {
		if m := admin.Do("POST", base+"/bulk", body).Want(400).Map(); !strings.HasPrefix(m["message"].(string), want) {
			t.Errorf("%.200s: %v, want %s", body, m, want)
		}
	}
	for _, body := range []string{`{"value":null}`, `{"value":["a"]}`, `{"value":{}}`} {
		if m := admin.Do("PUT", base+"/application.name", body).Want(400).Map(); m["message"] != "value: "+types {
			t.Errorf("%s: %v", body, m)
		}
	}
}

func TestPublicAndBranding(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	if m := s.Anonymous(t, "one").Do("GET", "/api/v1/settings/branding", nil).Want(200).Map(); m["applicationName"] != "Longbox" {
		t.Errorf("%v", m)
	}
	s.User(t, "one", "admin").Do("PUT", base+"/application.name", `{"value":"<b>Büro</b>"}`).Want(200)
	if m := s.Anonymous(t, "one").Do("GET", "/api/v1/settings/branding", nil).Want(200).Map(); m["applicationName"] != "<b>Büro</b>" {
		t.Errorf("%v", m)
	}
	if m := s.Anonymous(t, "two").Do("GET", "/api/v1/settings/branding", nil).Want(200).Map(); m["applicationName"] != "Longbox" {
		t.Errorf("another tenant's name: %v", m)
	}
	m := s.User(t, "one", "reader").Do("GET", "/api/v1/settings/public", nil).Want(200).Map()
	if len(m) != 2 || m["application.name"].(map[string]any)["value"] != "<b>Büro</b>" || m["display.custom_metadata_template"] == nil {
		t.Errorf("%v", m)
	}
	s.Anonymous(t, "one").Do("GET", "/api/v1/settings/public", nil).Want(401)
}

func TestOnlyAdministrators(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"POST", "/bulk", `{"settings":{"application.name":"x"}}`}, {"POST", "/bulk", `{}`},
		{"GET", "/application.name", ""}, {"GET", "/nothing", ""}, {"PUT", "/application.name", `{"value":"x"}`},
		{"PUT", "/application.name", `{"value":""}`}, {"PUT", "/nothing", `{"value":"x"}`},
		{"POST", "/application.name/reset", ""}, {"GET", "/application.name/history", ""},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		s.User(t, "one", "maintainer").Do(c.method, base+c.path, body).Want(403)
		s.Anonymous(t, "one").Do(c.method, base+c.path, body).Want(401)
	}
	s.User(t, "two", "admin").Do("PUT", base+"/scanner.batch_size", `{"value":"20"}`).Want(200)
	one := s.User(t, "one", "admin")
	if m := one.Do("GET", base+"/scanner.batch_size", nil).Want(200).Map(); m["value"] != "100" {
		t.Errorf("another tenant's value: %v", m)
	}
	if m := one.Do("GET", base+"/scanner.batch_size/history", nil).Want(200).Map(); m["total"] != 0.0 {
		t.Errorf("another tenant's history: %v", m)
	}
}

func TestReadInABatch(t *testing.T) {
	t.Parallel()
	s, _ := serve(t)
	read := func() (name string, days int64, open bool) {
		var b pgx.Batch
		setting.Value(&b, setting.ApplicationName, &name)
		setting.Int(&b, setting.TaskRetentionDays, &days)
		setting.Bool(&b, setting.RegistrationEnabled, &open)
		if err := s.DB.App.Run(s.In(s.One), &b); err != nil {
			t.Fatal(err)
		}
		return name, days, open
	}
	if name, days, open := read(); name != "Longbox" || days != 7 || open {
		t.Errorf("defaults: %s %d %v", name, days, open)
	}
	s.User(t, "one", "admin").Do("POST", base+"/bulk",
		`{"settings":{"application.name":"Mine","tasks.retention_days":30,"auth.registration_enabled":true}}`).Want(200)
	if name, days, open := read(); name != "Mine" || days != 30 || !open {
		t.Errorf("changed: %s %d %v", name, days, open)
	}
}
