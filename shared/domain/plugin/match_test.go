package plugin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/fault"
)

func TestSeriesIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, object{"searchQueryTemplate": "{{lowercase metadata.title}} {{metadata.year}}", "searchPreprocessingRules": []any{object{"pattern": " 1998$", "replacement": " x"}}})
	_, series, _ := r.series("Bleak House")
	at := base + "/series/" + series.String()
	c.Do("PATCH", at+"/metadata", object{"year": 1998}).Want(200)
	m := c.Do("GET", at+"/metadata/search-title?pluginId="+id, nil).Want(200).Map()
	if m["originalTitle"] != "Bleak House" || m["searchTitle"] != "bleak house x" || m["rulesApplied"] != 1.0 {
		t.Errorf("%v", m)
	}
	c.Do("GET", at+"/metadata/search-title?pluginId="+uuid.NewString(), nil).Want(404)
	match := func(body object) object {
		t.Helper()
		body["pluginId"] = id
		return c.Do("POST", at+"/metadata/auto-match", body).Want(200).Map()
	}
	if m := match(object{"query": "nothing"}); m["success"] != false || !strings.Contains(fmt.Sprint(m["message"]), `finds nothing for "nothing"`) {
		t.Errorf("%v", m)
	}
	if m := match(object{"query": "not there"}); m["success"] != false || !strings.Contains(fmt.Sprint(m["message"]), `finds nothing for "not there"`) {
		t.Errorf("%v", m)
	}
	r.DB.Set(t, r.One, "plugins.auto_match_confidence_threshold", "0.95")
	if m := match(object{}); m["success"] != false || !strings.Contains(fmt.Sprint(m["message"]), `the best is "bleak house x" with 0.90; at least 0.95 is needed`) {
		t.Errorf("%v", m)
	}
	r.DB.Set(t, r.One, "plugins.auto_match_confidence_threshold", "0.9")
	if m := match(object{}); m["success"] != true || m["matchedResult"].(object)["externalId"] != "1" || m["externalUrl"] != "https://example.org/1" ||
		!strings.Contains(list(m["appliedFields"]), "year") {
		t.Errorf("%v", m)
	}
	// It has an id of the plugin now, so nothing is searched.
	r.DB.Set(t, r.One, "plugins.auto_match_confidence_threshold", "1")
	if m := match(object{}); m["success"] != true || m["matchedResult"] != nil || m["message"] != "Nothing written" {
		t.Errorf("%v", m)
	}
	c.Do("PATCH", admin+"/"+id, object{"useExistingExternalId": false}).Want(200)
	if m := match(object{}); m["success"] != false {
		t.Errorf("%v", m)
	}
	// The plugin is not for this series.
	for _, change := range []object{{"libraryIds": []string{uuid.NewString()}}, {"libraryIds": []string{}, "metadataTargets": []string{"book"}}} {
		c.Do("PATCH", admin+"/"+id, change).Want(200)
		c.Do("POST", at+"/metadata/auto-match", object{"pluginId": id}).Want(400)
	}
}

// held returns the pending task for a series.
func (r *rig) held(series uuid.UUID) task.Held {
	r.t.Helper()
	h := task.Held{Tenant: r.One, Type: task.PluginAutoMatch, SeriesID: &series}
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), "select id, params from task where series_id = $1 and type = 'plugin_auto_match'", series).Scan(&h.ID, &h.Params); err != nil {
		r.t.Fatal(err)
	}
	return h
}

func TestSeriesAreFoundByTasks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, object{"autoMatchConditions": object{"rules": []any{object{"field": "metadata.title", "operator": "not_equals", "value": "Skip"}}}})
	library, a, _ := r.series("A")
	_, b, _ := r.series("Skip")
	body := object{"pluginId": id}
	enqueued := func(path string, body object, want int) object {
		t.Helper()
		m := c.Do("POST", base+path, body).Want(200).Map()
		if m["tasksEnqueued"] != float64(want) {
			t.Errorf("%s: %v", path, m)
		}
		return m
	}
	if m := enqueued("/series/"+a.String()+"/metadata/auto-match/task", body, 1); len(m["taskIds"].([]any)) != 1 || m["message"] != "1 task is queued" {
		t.Errorf("%v", m)
	}
	enqueued("/series/"+a.String()+"/metadata/auto-match/task", body, 0)
	enqueued("/libraries/"+library.String()+"/metadata/auto-match/task", body, 0)
	enqueued("/series/metadata/auto-match/task/bulk", object{"pluginId": id, "seriesIds": []string{a.String(), b.String(), uuid.NewString()}}, 1)
	c.Do("POST", base+"/series/"+uuid.NewString()+"/metadata/auto-match/task", body).Want(404)
	c.Do("POST", base+"/libraries/"+uuid.NewString()+"/metadata/auto-match/task", body).Want(404)
	c.Do("POST", base+"/series/"+a.String()+"/metadata/auto-match/task", object{"pluginId": uuid.NewString()}).Want(404)
	other, _ := r.add(c, object{"name": "other", "libraryIds": []string{uuid.NewString()}})
	for _, path := range []string{"/series/" + a.String(), "/libraries/" + library.String()} {
		c.Do("POST", base+path+"/metadata/auto-match/task", object{"pluginId": other}).Want(400)
	}
	c.Do("PATCH", admin+"/"+other, object{"libraryIds": []string{}, "metadataTargets": []string{"book"}}).Want(200)
	c.Do("POST", base+"/series/metadata/auto-match/task/bulk", object{"pluginId": other, "seriesIds": []string{a.String()}}).Want(400)

	ctx := r.In(r.One)
	r.heard()
	got, err := r.runner.Match(ctx, r.held(a))
	if out, ok := got.(plugin.Outcome); err != nil || !ok || !out.Matched || len(out.Applied) < 10 || r.heard() != "series_metadata_updated series_updated" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = r.runner.Match(ctx, r.held(b))
	if out, ok := got.(plugin.Outcome); err != nil || !ok || out.Matched || out.Message != "Skipped: the condition on metadata.title is not met" {
		t.Errorf("%+v, %v", got, err)
	}
	r.DB.Exec(t, `update library set auto_match_conditions = '{"rules":[{"field":"book_count","operator":"gt","value":5}]}'`)
	got, err = r.runner.Match(ctx, r.held(a))
	if out, ok := got.(plugin.Outcome); err != nil || !ok || out.Message != "Skipped: the condition on book_count is not met" {
		t.Errorf("%+v, %v", got, err)
	}
	// A task waits for a rate-limited plugin, but not forever.
	r.DB.Exec(t, "update library set auto_match_conditions = null")
	c.Do("PATCH", admin+"/"+id, object{"rateLimitRequestsPerMinute": 1}).Want(200)
	r.DB.Exec(t, "update plugin set tokens = 0, tokens_at = now()")
	if _, err = r.runner.Match(ctx, r.held(a)); err == nil || !strings.Contains(err.Error(), "continues later") {
		t.Errorf("%v", err)
	}
	// A search result is kept for the retry: otherwise, with one request a minute, its metadata would never be read.
	r.DB.Exec(t, "update plugin set tokens = 1, tokens_at = now(), use_existing_external_id = false")
	_, err = r.runner.Match(ctx, r.held(a))
	found := r.held(a)
	found.Place = json.RawMessage(placeOf(err))
	r.DB.Exec(t, "update plugin set tokens = 1, tokens_at = now()")
	if got, err = r.runner.Match(ctx, found); err != nil || !got.(plugin.Outcome).Matched {
		t.Errorf("%+v, %v", got, err)
	}
	// A lock that is set meanwhile wins, and the plugin is asked again.
	r.DB.Exec(t, "update plugin set rate_limit = null")
	r.onCall = func(method string) {
		if method == "metadata/series/get" {
			r.DB.Exec(t, "update series set locks = locks || 'summary'::text where id = $1", a)
		}
	}
	if _, err = r.runner.Match(ctx, r.held(a)); err == nil || !strings.Contains(err.Error(), "continues later") {
		t.Errorf("%v", err)
	}
	r.onCall = nil
	r.DB.Exec(t, "update plugin set rate_limit = 1, tokens = 0, tokens_at = now()")
	h := r.held(a)
	h.Place = json.RawMessage(`{"since":"2020-01-01T00:00:00Z","waits":40}`)
	var f *fault.Error
	if _, err = r.runner.Match(ctx, h); !errors.As(err, &f) || f.Code != fault.TooManyRequests {
		t.Errorf("%v", err)
	}
	c.Do("POST", admin+"/"+id+"/disable", nil).Want(200)
	c.Do("POST", base+"/series/"+a.String()+"/metadata/auto-match/task", body).Want(400)
	if _, err = r.runner.Match(ctx, r.held(a)); !errors.As(err, &f) || f.Code != fault.BadRequest {
		t.Errorf("%v", err)
	}
}
