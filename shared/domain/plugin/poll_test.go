package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

func (r *rig) text(sql string, args ...any) (out string) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(context.Background(), "select coalesce(("+sql+")::text, '')", args...).Scan(&out); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	return out
}

// placeOf returns the checkpoint of a task that continues later.
func placeOf(err error) string {
	return string(reflect.ValueOf(err).Elem().FieldByName("place").Bytes())
}

func TestPolls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	_, args, err := pluginkit.Command("releases")
	if err != nil {
		t.Fatal(err)
	}
	_, series, _ := r.series("Bleak House")
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked, latest_chapter) values ($1, $2, true, 7)", r.One, series)
	candidate := func(external string, confidence float64) object {
		return object{"seriesMatch": object{"seriesId": series, "confidence": confidence}, "externalReleaseId": external, "payloadUrl": "https://example.org/" + external}
	}
	call := func(method string, params object) object {
		params["sourceId"] = "$source"
		return object{"method": "releases/" + method, "params": params}
	}
	// A plugin that names no source gets one.
	id, _ := r.add(c, object{"name": "plain", "args": args})
	if got := r.text("select name || display_name || kind from release_source where plugin_id = $1", id); got != "defaultTestapi-feed" {
		t.Error(got)
	}
	c.Do("POST", admin+"/"+id+"/disable", nil).Want(200)
	c.Do("POST", admin+"/"+id+"/enable", nil).Want(200)
	if got := r.text("select count(*) from release_source where plugin_id = $1", id); got != "1" {
		t.Errorf("enabled again it has %s sources", got)
	}
	// A plugin without announcements gets none, and its requests are refused.
	_, plainArgs, _ := pluginkit.Command()
	r.add(c, object{"name": "metadata", "args": plainArgs, "config": object{"early": object{"sources": []object{{"sourceKey": "x", "kind": "api-feed"}}}}})
	if got := r.text("select count(*) from release_source"); got != "1" {
		t.Errorf("%s sources", got)
	}
	// A plugin that names its sources gets those.
	config := object{"early": object{"sources": []object{{"sourceKey": "a", "displayName": "A", "kind": "rss-series", "config": object{"x": 1}}, {"sourceKey": "b", "displayName": "B", "kind": "api-feed"}}}}
	id, _ = r.add(c, object{"name": "watcher", "args": args, "config": config})
	if got := r.text("select string_agg(name || display_name || coalesce(config::text, ''), ',' order by name) from release_source where plugin_id = $1", id); got != `aA{"x": 1},bB` {
		t.Error(got)
	}
	source := r.text("select id from release_source where name = 'a'")
	// They are kept if the plugin was tested before it was enabled: its process names them only once.
	tested, _ := r.add(c, object{"name": "tested", "args": args, "config": config, "enabled": false})
	for _, path := range []string{"/test", "/enable"} {
		c.Do("POST", admin+"/"+tested+path, nil).Want(200)
	}
	if got := r.text("select string_agg(name, ',' order by name) from release_source where plugin_id = $1", tested); got != "a,b" {
		t.Errorf("tested before it was enabled, it has the sources %q", got)
	}
	r.DB.Exec(t, "delete from release_source where plugin_id = $1", tested)
	c.Do("DELETE", admin+"/"+tested, nil).Want(204)
	poll := func(config object, place string) (any, error) {
		t.Helper()
		c.Do("PATCH", admin+"/"+id, object{"config": config}).Want(200)
		h := task.Held{Tenant: r.One, Type: task.PollReleaseSource, Params: json.RawMessage(`{"sourceId":"` + source + `"}`)}
		if place != "" {
			h.Place = json.RawMessage(place)
		}
		r.heard()
		return r.runner.Poll(r.In(r.One), h)
	}
	got, err := poll(object{"source": object{"requiresAliases": true}, "calls": []object{call("list_tracked", object{}), call("record", object{"candidate": candidate("1", 0.9)}),
		call("record", object{"candidate": candidate("1", 0.9)}), call("source_state/set", object{"etag": "v1"})},
		"result": object{"candidates": []object{candidate("1", 0.9), candidate("2", 0.9), candidate("3", 0.1)}}}, "")
	if out, ok := got.(*release.Outcome); err != nil || !ok || *out != (release.Outcome{Candidates: 3, Announced: 2, Refused: 1}) || r.heard() != "release_announced release_announced release_source_polled" {
		t.Errorf("%+v, %v", got, err)
	}
	if got := r.text("select concat_ws(' ', etag, last_error, last_summary) from release_source where id = $1", source); got != "v1 2 announced, 0 ignored, 0 already known, 1 refused" {
		t.Error(got)
	}
	// Without a result, the etag shows the data that it received.
	_, err = poll(object{"calls": []object{call("list_tracked", object{}), call("source_state/get", object{}), call("record", object{"candidate": candidate("2", 1)})}}, "")
	etag := r.text("select etag from release_source where id = $1", source)
	if err != nil || !strings.Contains(etag, `"seriesId":"`+series.String()) || !strings.Contains(etag, `"latestKnownChapter":7`) || !strings.Contains(etag, `"etag":"v1"`) ||
		!strings.Contains(etag, `"deduped":true,"ledgerId":"`+r.text("select id from release where external_release_id = '2'")) {
		t.Errorf("%s, %v", etag, err)
	}
	// Releases recorded before a failure are kept; it is not asked again before the next poll.
	var f *fault.Error
	if _, err = poll(object{"calls": []object{call("record", object{"candidate": candidate("4", 1)})}, "fails": "no network"}, ""); !errors.As(err, &f) || f.Code != fault.Conflict {
		t.Errorf("%v", err)
	}
	if got := r.text("select last_error from release_source where id = $1", source) + r.text("select state from release where external_release_id = '4'"); !strings.Contains(got, "no network") ||
		!strings.HasSuffix(got, "announced") || r.heard() != "release_announced release_source_polled" {
		t.Error(got)
	}
	if got := r.text("select request_summary from plugin_failure where plugin_id = $1 order by occurred_at desc limit 1", id); !strings.Contains(got, `config={"x": 1}`) {
		t.Error(got)
	}
	if got, err = poll(object{"result": object{"notModified": true, "upstreamStatus": 503}}, ""); err != nil || r.text("select last_error from release_source where id = $1", source) != "The source answers with status 503" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err = poll(object{"result": object{"notModified": true}}, ""); err != nil || r.text("select coalesce(last_error, '') || last_summary from release_source where id = $1", source) != "Nothing new" {
		t.Errorf("%v, %v", got, err)
	}
	// After a time-out, the next poll begins after the last series that it has reached, with a new release or a known one.
	c.Do("PATCH", admin+"/"+id, object{"requestTimeoutSeconds": 3}).Want(200)
	if _, err = poll(object{"calls": []object{call("record", object{"candidate": candidate("1", 0.9)})}, "hangs": true}, ""); !errors.As(err, &f) || !strings.Contains(f.Message, "in time") ||
		r.text("select resume_after from release_source where id = $1", source) != series.String() {
		t.Errorf("%v", err)
	}
	c.Do("PATCH", admin+"/"+id, object{"requestTimeoutSeconds": nil}).Want(200)
	if _, err = poll(object{}, ""); err != nil || r.text("select coalesce(resume_after::text, etag, 'none') from release_source where id = $1", source) != "none" {
		t.Errorf("%v", err)
	}
	// An overloaded database is no failure of the plugin: the task is retried.
	slow, err := db.Open(db.Config{URL: r.DB.AppURL, MaxConns: 2, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	tx, err := r.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "lock table series_tracking in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	hasty := *r.runner
	hasty.Database = slow
	if _, err = hasty.Poll(r.In(r.One), task.Held{Tenant: r.One, Params: json.RawMessage(`{"sourceId":"` + source + `"}`)}); !errors.As(err, &f) || f.Code != fault.Unavailable {
		t.Errorf("%v", err)
	}
	if err := tx.Rollback(t.Context()); err != nil || r.text("select last_error from release_source where id = $1", source) != "" {
		t.Errorf("%v", err)
	}
	// A task waits for the plugin's own rate limit, but not forever.
	c.Do("PATCH", admin+"/"+id, object{"rateLimitRequestsPerMinute": 1}).Want(200)
	place := ""
	for n := range 11 {
		r.DB.Exec(t, "update plugin set tokens = 0, tokens_at = now()")
		if _, err = poll(object{}, place); !waits(err) {
			t.Fatalf("wait %d: %v", n, err)
		}
		place = placeOf(err)
	}
	if _, err = poll(object{}, `{"since":"2020-01-01T00:00:00Z","waits":40}`); !errors.As(err, &f) || f.Code != fault.Conflict {
		t.Errorf("%v", err)
	}
	c.Do("PATCH", admin+"/"+id, object{"rateLimitRequestsPerMinute": nil}).Want(200)
	// It may name other sources during a poll.
	if _, err = poll(object{"calls": []object{call("register_sources", object{"sources": []object{{"sourceKey": "b", "kind": "api-feed"}}}), call("record", object{"candidate": candidate("5", 1)})}}, ""); err != nil ||
		r.text("select string_agg(name, ',') from release_source where plugin_id = $1", id) != "b" {
		t.Errorf("%v", err)
	}
	if _, err = poll(object{}, ""); !errors.As(err, &f) || f.Code != fault.NotFound {
		t.Errorf("%v", err)
	}
	source = r.text("select id from release_source where name = 'b'")
	c.Do("POST", admin+"/"+id+"/disable", nil).Want(200)
	if _, err = poll(object{}, ""); !errors.As(err, &f) || !strings.Contains(f.Message, "disabled") {
		t.Errorf("%v", err)
	}
	r.DB.Exec(t, "update release_source set enabled = false")
	if _, err = poll(object{}, ""); !errors.As(err, &f) || f.Code != fault.Conflict {
		t.Errorf("%v", err)
	}
	if _, err = r.runner.Poll(r.In(r.One), task.Held{Params: json.RawMessage(`{"sourceId":"` + uuid.NewString() + `"}`)}); !errors.As(err, &f) || f.Code != fault.NotFound {
		t.Errorf("%v", err)
	}
}
