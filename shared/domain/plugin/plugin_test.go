package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	functions "github.com/longbox/longbox/shared/app/plugin"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/plug/host"
	"github.com/longbox/longbox/shared/platform/seal"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

func TestMain(m *testing.M) {
	pluginkit.Main()
	os.Exit(m.Run())
}

const (
	base  = "/api/v1"
	admin = base + "/admin/plugins"
)

type object = map[string]any

// rig is a server with running plugins, which records events.
type rig struct {
	*testkit.Server
	t       *testing.T
	runner  *plugin.Runner
	command string
	data    string // root of the plugins' folders

	mu     sync.Mutex
	told   []string
	cover  []byte // served at every picture URL; nil: URLs are really requested
	onTold func(kind string)
	onCall func(method string) // called before each request to a plugin
}

func newRig(t *testing.T) *rig {
	t.Helper()
	command, _, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	f, err := functions.New(functions.Config{Token: "token", Host: host.Config{Commands: plug.Commands{command}, Data: data, Processes: 8, Idle: 1e12}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Host.Close)
	h, err := f.Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, command: command, data: data}
	srv := httptest.NewServer(r.covering(outside(t, h)))
	t.Cleanup(srv.Close)
	key, err := seal.New(seal.Config{Key: strings.Repeat("QUFB", 10) + "QUE="}) // 32 bytes
	if err != nil {
		t.Fatal(err)
	}
	client := plug.New(plug.Config{Commands: plug.Commands{command}, URL: srv.URL, Token: "token"})
	publish := func(_ context.Context, _ uuid.UUID, all ...events.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range all {
			r.told = append(r.told, e.Kind)
			if r.onTold != nil {
				r.onTold(e.Kind)
			}
		}
	}
	r.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		plugin.Routes(a, d, client, key, publish, nil)
		series.Routes(a, d, publish, nil)
		book.Routes(a, d, publish, nil)
		progress.Routes(a, d)
		r.runner = &plugin.Runner{Database: d, Client: client, Key: key, Publish: publish}
	})
	return r
}

// covering answers requests for pictures with the rig's cover.
func (r *rig) covering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var call plug.Call
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(body, &call)
		}
		if err != nil {
			r.t.Error(err)
		}
		r.mu.Lock()
		cover, onCall := r.cover, r.onCall
		r.mu.Unlock()
		if onCall != nil {
			onCall(call.Method)
		}
		if call.Fetch == "" || cover == nil {
			req.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, req)
			return
		}
		if err := json.NewEncoder(w).Encode(plug.Answer{Picture: cover}); err != nil {
			r.t.Error(err)
		}
	})
}

// outside sends requests to external servers itself, since test servers have no public addresses.
func outside(t *testing.T, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call plug.Call
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &call)
		}
		if err != nil {
			t.Error(err)
		}
		if call.Web == nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		}
		if call.Web.Trusted {
			t.Error("an address of a plugin is trusted")
		}
		res, err := http.Post(call.Web.Address, call.Web.Headers["Content-Type"], bytes.NewReader(call.Web.Form))
		if err != nil {
			t.Error(err)
			return
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err == nil {
			err = json.NewEncoder(w).Encode(plug.Answer{Web: &plug.WebResponse{Status: res.StatusCode, Body: got}})
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// heard returns the kinds of events since the last call.
func (r *rig) heard() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := strings.Join(r.told, " ")
	r.told = nil
	return out
}

// add adds a plugin, with changes of the body, and returns its id.
func (r *rig) add(c *testkit.Client, changes object) (id string, answer object) {
	r.t.Helper()
	_, args, _ := pluginkit.Command()
	body := object{"name": "test", "displayName": "Test", "command": r.command, "args": args, "enabled": true, "permissions": []string{"metadata:write:*"},
		"scopes": []string{"series:detail", "book:detail"}}
	for k, v := range changes {
		body[k] = v
	}
	answer = c.Do("POST", admin, body).Want(201).Map()
	return answer["plugin"].(object)["id"].(string), answer
}

// series adds a library with a series of one book.
func (r *rig) series(title string) (library, id, book uuid.UUID) {
	r.t.Helper()
	library, id, book = uuid.New(), uuid.New(), uuid.New()
	r.DB.Exec(r.t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		values ($1, $2::uuid, $2::text, '/' || $2::text, 'b', '', 'series_volume', 'filename', 'file_order')`, r.One, library)
	r.DB.Exec(r.t, `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, $4, $4, $4, $4, lower($4))`, r.One, id, library, title)
	r.DB.Exec(r.t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
		values ($1, $2, $3, $4, $5, 10, now(), 'cbz', $5, $5, $5)`, r.One, book, library, id, title+".cbz")
	return library, id, book
}

func TestPluginsAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, answer := r.add(c, object{"enabled": false, "description": "For tests", "config": object{"region": "jp", "snake_case": 1}, "credentials": object{"api_key": "s3cret"},
		"env": []any{object{"key": "MODE", "value": "x"}}, "rateLimitRequestsPerMinute": 60, "internalConfig": object{"searchResultsLimit": 1}})
	if answer["healthCheckPerformed"] != false || answer["healthCheckPassed"] != nil || r.heard() != "plugin_created" {
		t.Errorf("%v", answer)
	}
	got := c.Do("GET", admin+"/"+id, nil).Want(200)
	m := got.Map()
	if strings.Contains(string(got.Body), "s3cret") || m["hasCredentials"] != true || m["healthStatus"] != "unknown" || m["enabled"] != false ||
		m["env"].(object)["MODE"] != "x" || m["config"].(object)["snake_case"] != 1.0 || m["internalConfig"].(object)["searchResultsLimit"] != 1.0 ||
		m["manifest"] != nil || m["userCount"] != nil || m["pluginType"] != "system" || m["credentialDelivery"] != "env" {
		t.Errorf("%s", got.Body)
	}
	var kept []byte
	if err := r.DB.Owner.Pool().QueryRow(context.Background(), "select credentials from plugin").Scan(&kept); err != nil || len(kept) < 20 || strings.Contains(string(kept), "s3cret") {
		t.Errorf("%q, %v", kept, err)
	}
	m = c.Do("PATCH", admin+"/"+id, object{"rateLimitRequestsPerMinute": nil, "displayName": "Other"}).Want(200).Map()
	if m["rateLimitRequestsPerMinute"] != nil || m["displayName"] != "Other" || m["hasCredentials"] != true || m["description"] != "For tests" {
		t.Errorf("%v", m)
	}
	if again := c.Do("PATCH", admin+"/"+id, m).Want(200).Map(); again["env"].(object)["MODE"] != "x" {
		t.Errorf("the record sent back: %v", again)
	}
	if m = c.Do("PATCH", admin+"/"+id, object{"env": object{"A_b": "1", "LIST": strings.Repeat("é", 10000)}}).Want(200).Map(); fmt.Sprint(m["env"]) != "map[A_b:1 LIST:"+strings.Repeat("é", 10000)+"]" {
		t.Errorf("%v", m["env"])
	}
	if m = c.Do("PATCH", admin+"/"+id, object{"credentials": object{}}).Want(200).Map(); m["hasCredentials"] != false {
		t.Errorf("%v", m)
	}
	c.Do("POST", admin, object{"name": "test", "command": r.command}).Want(409)
	if list := c.Do("GET", admin, nil).Want(200).Map(); list["total"] != 1.0 {
		t.Errorf("%v", list)
	}
	r.heard()
	c.Do("DELETE", admin+"/"+id, nil).Want(204)
	c.Do("GET", admin+"/"+id, nil).Want(404)
	if r.heard() != "plugin_deleted" {
		t.Error("nobody is told")
	}
}

func TestWhatAPluginMustNotBe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	for _, w := range []struct {
		change       object
		field, words string
	}{
		{object{"name": "-x"}, "name", ""},
		{object{"name": "X"}, "name", ""},
		{object{"command": "/bin/sh"}, "command", "is not allowed; the operator"},
		{object{"command": ""}, "command", "is not allowed"},
		{object{"displayName": " "}, "displayName", "visible characters"},
		{object{"args": []string{"a\x00"}}, "args[0]", ""},
		{object{"workingDirectory": "x"}, "workingDirectory", "absolute"},
		{object{"env": []any{object{"key": "PATH", "value": "/x"}}}, "env[0].key", "PATH"},
		{object{"env": object{"OK": "1", "PATH": "/x"}}, "env[1].key", "PATH"},
		{object{"env": object{"A": 1}}, "env", "strings"},
		{object{"env": object{"": "x"}}, "env[0].key", ""},
		{object{"env": "x"}, "env", "strings"},
		{object{"env": []any{object{"key": "A"}}}, "env[0].value", ""},
		{object{"env": object{"A": nil}}, "env[0].value", ""},
		{object{"env": object{"A": strings.Repeat("x", 10001)}}, "env[0].value", ""},
		{object{"env": []any{object{"value": "x"}}}, "env[0].key", ""},
		{object{"config": []any{}}, "config", "object"},
		{object{"credentials": object{"a": 1}}, "credentials", "strings"},
		{object{"credentials": object{"node_options": "x"}}, "credentials", "node_options"},
		{object{"internalConfig": object{"searchResultsLimit": -1}}, "internalConfig.searchResultsLimit", ""},
		{object{"pluginType": "group"}, "pluginType", "system"},
		{object{"credentialDelivery": "mail"}, "credentialDelivery", ""},
		{object{"scopes": []string{"moon"}}, "scopes[0]", "series:detail"},
		{object{"permissions": []string{"metadata:write:everything"}}, "permissions[0]", "metadata:write:title"},
		{object{"metadataTargets": []string{"page"}}, "metadataTargets[0]", ""},
		{object{"autoMatchConditions": object{"rules": []any{object{"field": "a", "operator": "is"}}}}, "autoMatchConditions.rules[0].operator", ""},
		{object{"searchQueryTemplate": "{{#if a}}"}, "searchQueryTemplate", "the block if is not closed"},
		{object{"searchPreprocessingRules": []any{object{"pattern": "("}}}, "searchPreprocessingRules[0].pattern", ""},
		{object{"syncCronSchedule": "0 0 * * *"}, "syncCronSchedule", "type user"},
		{object{"requestTimeoutSeconds": 0}, "requestTimeoutSeconds", ""},
	} {
		_, args, _ := pluginkit.Command()
		body := object{"name": "test", "displayName": "Test", "command": r.command, "args": args}
		for k, v := range w.change {
			body[k] = v
		}
		got := string(c.Do("POST", admin, body).Want(400).Body)
		if !strings.Contains(got, `"`+w.field+`"`) || !strings.Contains(got, w.words) {
			t.Errorf("%v: %s", w.change, got)
		}
	}
	r.User(t, "one", "maintainer").Do("GET", admin, nil).Want(403)
	if n := c.Do("GET", admin, nil).Want(200).Map()["total"]; n != 0.0 {
		t.Errorf("%v plugins were kept", n)
	}
}

func TestPluginComesAndGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, answer := r.add(c, object{"credentials": object{"api_key": "s3cret"}, "credentialDelivery": "both", "config": object{"region": "j p"}})
	p := answer["plugin"].(object)
	if answer["healthCheckPassed"] != true || p["healthStatus"] != "healthy" || p["manifest"].(object)["version"] != "1.2.3" ||
		p["manifest"].(object)["capabilities"].(object)["metadataProvider"].([]any)[1] != "book" ||
		p["manifest"].(object)["requiredCredentials"].([]any)[0].(object)["credentialType"] != "password" {
		t.Errorf("%v", answer)
	}
	if m := c.Do("POST", admin+"/"+id+"/test", nil).Want(200).Map(); m["success"] != true || m["message"] != "test 1.2.3 answers" {
		t.Errorf("%v", m)
	}
	if m := c.Do("GET", base+"/plugins/actions?scope=series:detail", nil).Want(200).Map(); len(m["actions"].([]any)) != 1 {
		t.Errorf("%v", m)
	}
	if m := c.Do("GET", base+"/plugins/actions?scope=series:bulk", nil).Want(200).Map(); len(m["actions"].([]any)) != 0 {
		t.Errorf("%v", m)
	}
	c.Do("GET", base+"/plugins/actions?scope=moon", nil).Want(400)
	link := c.Do("GET", base+"/plugins/web-links", nil).Want(200).Map()["providers"].([]any)[0].(object)
	if link["searchUrlTemplate"] != "https://example.org/search?q={title}" || link["seriesLinks"].([]any)[0].(object)["urlTemplate"] != "https://example.org/j%20p/{externalId}" {
		t.Errorf("%v", link)
	}
	run := func(c *testkit.Client, action any, status int) object {
		t.Helper()
		return c.Do("POST", base+"/plugins/"+id+"/execute", object{"action": action}).Want(status).Map()
	}
	search := func(kind, query string) object {
		return object{"metadata": object{"action": "search", "contentType": kind, "params": object{"query": query}}}
	}
	maintainer := r.User(t, "one", "maintainer")
	if m := run(maintainer, search("series", "x"), 200); m["success"] != true || len(m["result"].(object)["results"].([]any)) != 2 {
		t.Errorf("%v", m)
	}
	run(maintainer, object{"metadata": object{"action": "search", "content_type": "book", "params": object{"query": "x"}}}, 200)
	run(maintainer, "ping", 403)
	run(r.User(t, "one", "reader"), search("series", "x"), 403)
	if m := run(c, "ping", 200); m["success"] != true || m["result"] != "pong" {
		t.Errorf("%v", m)
	}
	run(c, "pong", 400)
	if m := run(c, search("series", "slow down"), 200); m["success"] != false || m["error"] != "too many requests" {
		t.Errorf("%v", m)
	}
	c.Do("PATCH", admin+"/"+id, object{"internal_config": object{"search_results_limit": 1}}).Want(200)
	if m := run(c, search("series", "x"), 200); len(m["result"].(object)["results"].([]any)) != 1 {
		t.Errorf("%v", m)
	}
	metrics := c.Do("GET", base+"/metrics/plugins", nil).Want(200).Map()
	one := metrics["plugins"].([]any)[0].(object)
	if one["requestsTotal"] != 7.0 || one["requestsFailed"] != 1.0 || one["rateLimitRejections"] != 1.0 || one["byMethod"].(object)["ping"].(object)["requestsTotal"] != 3.0 ||
		metrics["summary"].(object)["healthyPlugins"] != 1.0 {
		t.Errorf("%v", metrics)
	}
	r.heard()
	if m := c.Do("POST", admin+"/"+id+"/disable", nil).Want(200).Map(); m["plugin"].(object)["enabled"] != false || m["plugin"].(object)["healthStatus"] != "disabled" {
		t.Errorf("%v", m)
	}
	run(c, "ping", 400)
	if m := c.Do("POST", admin+"/"+id+"/test", nil).Want(200).Map(); m["success"] != true {
		t.Errorf("a disabled plugin is not tested: %v", m)
	}
	if m := c.Do("POST", admin+"/"+id+"/enable", nil).Want(200).Map(); m["healthCheckPassed"] != true || m["plugin"].(object)["healthStatus"] != "healthy" {
		t.Errorf("%v", m)
	}
	if got := r.heard(); got != "plugin_disabled plugin_enabled" {
		t.Error(got)
	}
}

// A manifest may contain what the database does not accept.
func TestStrangeManifest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, args, _ := pluginkit.Command("strange")
	_, answer := r.add(r.User(t, "one", "admin"), object{"args": args})
	if m := answer["plugin"].(object)["manifest"].(object); answer["healthCheckPassed"] != true || m["description"] != "ab" || m["author"] != "\uFFFD" {
		t.Errorf("%v", answer)
	}
}

// A manifest with wrong types is rejected, and nothing unreadable is stored.
func TestMistypedManifest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	_, args, _ := pluginkit.Command("mistyped")
	id, answer := r.add(c, object{"args": args})
	if answer["healthCheckPassed"] != false || !strings.Contains(fmt.Sprint(answer["healthCheckError"]), "manifest cannot be used: author must be a string, not object") {
		t.Errorf("%v", answer)
	}
	if m := c.Do("GET", admin+"/"+id, nil).Want(200).Map(); m["manifest"] != nil || m["healthStatus"] != "unhealthy" {
		t.Errorf("%v", m)
	}
}

// Error messages of a plugin are shortened, storable, and without its credentials.
func TestFailuresKeepSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	secrets := object{"api-key": "s3cret value"}
	for n := 4; n < len("s3cret value"); n++ { // a secret within another leaves no rest of that
		secrets[fmt.Sprintf("part-%d", n)] = "s3cret value"[:n]
	}
	id, _ := r.add(c, object{"credentials": secrets})
	_, series, _ := r.series("A")
	at := base + "/series/" + series.String() + "/metadata/preview"
	for external, words := range map[string]string{"secret": "key=…&again=… answers 500!!!", "mistyped": "cannot be used", "null": "does not know"} {
		status := 503
		if external == "null" {
			status = 404
		}
		got := string(c.Do("POST", at, object{"pluginId": id, "externalId": external}).Want(status).Body)
		if !strings.Contains(got, words) || strings.Contains(got, "s3cret") || len(got) > 2000 {
			t.Errorf("%s: %.300s", external, got)
		}
	}
	got := string(c.Do("GET", admin+"/"+id+"/failures", nil).Want(200).Body)
	if strings.Contains(got, "s3cret") || strings.Count(got, "errorMessage") != 2 || len(got) > 5000 {
		t.Errorf("%.500s", got)
	}
	// The same holds for other settings whose names suggest a secret, which only administrators see.
	for name, settings := range map[string]object{"by-env": {"env": []any{object{"key": "API_KEY", "value": "s3cret value"}}}, "by-config": {"config": object{"apiKey": "s3cret value", "region": "answers"}}} {
		settings["name"] = name
		id, _ := r.add(c, settings)
		if got := string(c.Do("POST", at, object{"pluginId": id, "externalId": "secret"}).Want(503).Body); !strings.Contains(got, "key=…&again=… answers 500!!!") {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// Credentials are delivered as configured, and nowhere else.
func TestCredentialsAreDelivered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	_, series, _ := r.series("A")
	id, _ := r.add(c, object{"credentials": object{"api-key": "s3cret value"}})
	for delivery, want := range map[string]string{"env": "environment: … initialize: ", "init_message": "environment:  initialize: …", "both": "environment: … initialize: …"} {
		c.Do("PATCH", admin+"/"+id, object{"credentialDelivery": delivery}).Want(200)
		c.Do("POST", admin+"/"+id+"/enable", nil).Want(200) // regardless of previous failures
		m := c.Do("POST", base+"/series/"+series.String()+"/metadata/preview", object{"pluginId": id, "externalId": "delivered"}).Want(503).Map()
		if m["message"] != want {
			t.Errorf("%s: %q, want %q", delivery, m["message"], want)
		}
	}
}

// A limit of one request a minute means one a minute.
func TestSmallestLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, object{"rateLimitRequestsPerMinute": 1})
	_, series, _ := r.series("A")
	match := func(status int) {
		t.Helper()
		c.Do("POST", base+"/series/"+series.String()+"/metadata/auto-match", object{"pluginId": id}).Want(status)
	}
	r.DB.Exec(t, "update plugin set tokens = 0, tokens_at = now()")
	match(429)
	c.Do("GET", base+"/metrics/plugins", nil).Want(200)
	r.DB.Exec(t, "update plugin set tokens_at = now() - interval '61 seconds'")
	match(429) // the search is answered, the metadata request is not
	r.DB.Exec(t, "update plugin set tokens_at = now() - interval '1 day'")
	c.Do("POST", base+"/series/"+series.String()+"/metadata/preview", object{"pluginId": id, "externalId": "1"}).Want(200)
	one := c.Do("GET", base+"/metrics/plugins", nil).Want(200).Map()["plugins"].([]any)[0].(object)
	if one["requestsTotal"] != 3.0 || one["requestsFailed"] != 0.0 || one["rateLimitRejections"] != 2.0 {
		t.Errorf("%v", one)
	}
}

// A user from whom something is hidden cannot manage plugins: error messages name series.
func TestWhoDoesNotSeeAllManagesNoPlugins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	tag := uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'Kids')", r.One, tag)
	r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", r.One, tag, c.ID)
	c.Do("GET", admin, nil).Want(403)
	c.Do("GET", admin+"/"+id+"/failures", nil).Want(403)
}

// Failures count for an hour, and are kept for 30 days, at most 500.
func TestOldFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	_, args, _ := pluginkit.Command("dies")
	id, _ := r.add(c, object{"args": args})
	_, series, _ := r.series("A")
	fail := func() {
		t.Helper()
		c.Do("POST", base+"/series/"+series.String()+"/metadata/preview", object{"pluginId": id, "externalId": "1"}).Want(503)
	}
	r.DB.Exec(t, "update plugin set counted_from = now() - interval '1 year'")
	fail()
	r.DB.Exec(t, "update plugin_failure set occurred_at = now() - interval '61 minutes'")
	fail()
	if m := c.Do("GET", admin+"/"+id+"/failures", nil).Want(200).Map(); m["windowFailures"] != 1.0 || m["total"] != 3.0 || r.text("select enabled from plugin") != "true" {
		t.Errorf("%v", m)
	}
	r.DB.Exec(t, "update plugin_failure set occurred_at = now() - interval '31 days' where occurred_at < now() - interval '1 hour'")
	if m := c.Do("GET", admin+"/"+id+"/failures", nil).Want(200).Map(); m["total"] != 1.0 {
		t.Errorf("%v", m)
	}
	r.DB.Exec(t, `insert into plugin_failure (tenant_id, id, plugin_id, code, message, occurred_at) select $1, gen_random_uuid(), $2, 'TIMEOUT', n::text, now() - interval '1 hour' * (n + 1)
		from generate_series(1, 505) n`, r.One, id)
	fail()
	if got := r.text("select concat_ws(' ', count(*), count(*) filter (where occurred_at < now() - interval '30 days'), count(*) filter (where message in ('498', '499'))) from plugin_failure"); got != "500 0 1" {
		t.Errorf("%s are kept", got)
	}
}

func TestPluginsAreNotTooMany(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	r.DB.Exec(t, `insert into plugin (tenant_id, id, name, display_name, plugin_type, command, credential_delivery, enabled, use_existing_external_id)
		select $1, gen_random_uuid(), 'p' || n, 'P', 'system', 'p', 'env', true, true from generate_series(1, 99) n`, r.One)
	answers := make([]int, 2)
	add := func(i int) func() {
		return func() {
			answers[i] = c.Do("POST", admin, object{"name": fmt.Sprint("last-", i), "displayName": "Last", "command": r.command, "enabled": false}).Status
		}
	}
	r.DB.Together(t, "plugin", add(0), add(1))
	if slices.Sort(answers); !slices.Equal(answers, []int{201, 409}) {
		t.Errorf("of two that add the last one at once: %v", answers)
	}
	if got := string(c.Do("POST", admin, object{"name": "more", "displayName": "More", "command": r.command}).Want(409).Body); !strings.Contains(got, "There are already 100 plugins") {
		t.Error(got)
	}
}

func TestPluginThatFailsIsDisabled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	_, args, _ := pluginkit.Command("dies")
	id, answer := r.add(c, object{"args": args})
	if answer["healthCheckPassed"] != false || !strings.Contains(fmt.Sprint(answer["healthCheckError"]), "no such library") || answer["plugin"].(object)["healthStatus"] != "unhealthy" {
		t.Errorf("%v", answer)
	}
	_, series, _ := r.series("A")
	preview := func(status int) *testkit.Response {
		t.Helper()
		return c.Do("POST", base+"/series/"+series.String()+"/metadata/preview", object{"pluginId": id, "externalId": "1"}).Want(status)
	}
	if got := string(preview(503).Body); !strings.Contains(got, "no such library") {
		t.Error(got)
	}
	c.Do("POST", admin+"/"+id+"/reset", nil).Want(200)
	for range 2 {
		preview(503)
	}
	m := c.Do("GET", admin+"/"+id+"/health", nil).Want(200).Map()["health"].(object)
	if m["failureCount"] != 2.0 || m["enabled"] != true || m["healthStatus"] != "unhealthy" {
		t.Errorf("%v", m)
	}
	if told := r.heard(); strings.Contains(told, "plugin_disabled") {
		t.Errorf("told %s before it is disabled", told)
	}
	preview(503)
	if told := r.heard(); told != "plugin_disabled" {
		t.Errorf("told %q", told)
	}
	m = c.Do("GET", admin+"/"+id+"/health", nil).Want(200).Map()["health"].(object)
	if m["enabled"] != false || m["healthStatus"] != "disabled" || !strings.HasPrefix(fmt.Sprint(m["disabledReason"]), "Disabled after 3 failures within an hour; the last: The plugin has stopped") {
		t.Errorf("%v", m)
	}
	preview(400)
	failures := c.Do("GET", admin+"/"+id+"/failures?pageSize=2", nil).Want(200).Map()
	first := failures["data"].([]any)[0].(object)
	if failures["total"] != 5.0 || failures["windowFailures"] != 5.0 || failures["threshold"] != 3.0 || len(failures["data"].([]any)) != 2 ||
		first["errorCode"] != "PROCESS_ERROR" || first["method"] != "metadata/series/get" || first["requestSummary"] != "externalId=1" {
		t.Errorf("%v", failures)
	}
	if m := c.Do("POST", admin+"/"+id+"/enable", nil).Want(200).Map(); m["plugin"].(object)["enabled"] != true || m["healthCheckPassed"] != false {
		t.Errorf("one failure after it was enabled disables it: %v", m)
	}
	r.heard()
	c.Do("POST", admin+"/"+id+"/disable", nil).Want(200)
	for range 4 { // further failures do not matter: it is disabled already
		c.Do("POST", admin+"/"+id+"/test", nil).Want(200)
	}
	if told := r.heard(); told != "plugin_disabled" {
		t.Errorf("told %q", told)
	}
	c.Do("GET", admin+"/"+uuid.NewString()+"/failures", nil).Want(404)
}

// "Not found" and "rate limited" are not failures.
func TestRefusalsAreNoFailures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, object{"rateLimitRequestsPerMinute": 6})
	_, series, _ := r.series("A")
	at := base + "/series/" + series.String() + "/metadata/preview"
	for range 5 {
		c.Do("POST", at, object{"pluginId": id, "externalId": "9"}).Want(404)
	}
	c.Do("POST", at, object{"pluginId": id, "externalId": "1"}).Want(200)
	if got := c.Do("POST", at, object{"pluginId": id, "externalId": "1"}).Want(429); got.Header.Get("Retry-After") != "10" {
		t.Errorf("%v %s", got.Header, got.Body)
	}
	m := c.Do("GET", admin+"/"+id, nil).Want(200).Map()
	if m["enabled"] != true || m["failureCount"] != 0.0 || m["healthStatus"] != "healthy" {
		t.Errorf("%v", m)
	}
	r.DB.Exec(t, "update plugin set tokens_at = now() - interval '11 seconds'")
	c.Do("POST", at, object{"pluginId": id, "externalId": "1"}).Want(200)
	c.Do("POST", at, object{"pluginId": id, "externalId": "1"}).Want(429)
}

// statuses returns the fields of a preview by status.
func statuses(r *testkit.Response) map[string]string {
	out := map[string]string{}
	for _, f := range r.Want(200).Map()["fields"].([]any) {
		f := f.(object)
		out[f["status"].(string)] += " " + f["field"].(string)
	}
	return out
}

func list(v any) string {
	var out []string
	for _, e := range v.([]any) {
		switch e := e.(type) {
		case object:
			out = append(out, fmt.Sprint(e["field"]))
		default:
			out = append(out, fmt.Sprint(e))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestSeriesOfAPlugin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	_, series, _ := r.series("A")
	at := base + "/series/" + series.String()
	one := object{"pluginId": id, "externalId": "1"}
	c.Do("PUT", at+"/metadata/locks", object{"summary": true}).Want(200)
	if got := statuses(c.Do("POST", at+"/metadata/preview", one)); got["locked"] != " summary" || got["not_provided"] != " cover" || strings.Count(got["will_apply"], " ") != 16 {
		t.Errorf("%v", got)
	}
	dry := c.Do("POST", at+"/metadata/apply", object{"pluginId": id, "externalId": "1", "dryRun": true, "fields": []string{"title", "year", "summary"}}).Want(200).Map()
	if list(dry["appliedFields"]) != "title year" || list(dry["skippedFields"]) != "summary" || len(dry["dryRunReport"].(object)["changes"].([]any)) != 2 {
		t.Errorf("%v", dry)
	}
	c.Do("POST", at+"/metadata/apply", object{"pluginId": id, "externalId": "1", "fields": []string{"moon"}}).Want(400)
	if m := c.Do("GET", at, nil).Want(200).Map(); m["title"] != "A" || len(m["externalIds"].([]any)) != 0 {
		t.Errorf("a dry run has written: %v", m)
	}
	r.heard()
	done := c.Do("POST", at+"/metadata/apply", one).Want(200).Map()
	if done["message"] != "16 fields written" || done["dryRunReport"] != nil || list(done["skippedFields"]) != "summary" {
		t.Errorf("%v", done)
	}
	if got := r.heard(); got != "series_metadata_updated series_updated" {
		t.Error(got)
	}
	m := c.Do("GET", at, nil).Want(200).Map()
	meta := m["metadata"].(object)
	if m["title"] != "The Given Title" || meta["summary"] != nil || meta["status"] != "ended" || meta["year"] != 1999.0 || meta["totalChapterCount"] != 99.5 ||
		meta["language"] != "ja" || meta["readingDirection"] != "rtl" || meta["ageRating"] != 16.0 || meta["publisher"] != "Tower" ||
		meta["locks"].(object)["title"] != false {
		t.Errorf("%v", m)
	}
	if len(m["genres"].([]any)) != 2 || len(m["tags"].([]any)) != 1 || len(meta["authors"].([]any)) != 3 || meta["authors"].([]any)[1].(object)["role"] != "contributor" ||
		len(m["alternateTitles"].([]any)) != 2 || len(m["externalLinks"].([]any)) != 1 || len(m["externalIds"].([]any)) != 2 || len(m["externalRatings"].([]any)) != 1 {
		t.Errorf("%v", m)
	}
	for _, x := range m["externalIds"].([]any) {
		if x := x.(object); x["source"] == "plugin:test" && (x["externalId"] != "1" || x["externalUrl"] != "https://example.org/1" || x["lastSyncedAt"] == nil) {
			t.Errorf("%v", x)
		}
	}
	if got := statuses(c.Do("POST", at+"/metadata/preview", one)); got["will_apply"] != "" || got["locked"] != " summary" || strings.Count(got["unchanged"], " ") != 16 {
		t.Errorf("after it was written: %v", got)
	}
	// Unusable values are skipped.
	two := object{"pluginId": id, "externalId": "2"}
	if got := statuses(c.Do("POST", at+"/metadata/preview", two)); got["will_apply"] != " title genres cover" {
		t.Errorf("%v", got)
	}
	done = c.Do("POST", at+"/metadata/apply", two).Want(200).Map()
	if list(done["appliedFields"]) != "genres title" || !strings.Contains(fmt.Sprint(done["skippedFields"]), "127.0.0.1 is not a public address") ||
		list(done["skippedFields"]) != "ageRating cover language readingDirection status summary year" {
		t.Errorf("%v", done)
	}
	if m := c.Do("GET", at, nil).Want(200).Map(); m["title"] != "Another" || list(names(m["genres"])) != "Fine" || m["metadata"].(object)["status"] != "ended" {
		t.Errorf("%v", m)
	}
}

func names(terms any) any {
	var out []any
	for _, g := range terms.([]any) {
		out = append(out, g.(object)["name"])
	}
	return out
}

func TestWhatAPluginMayWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	library, series, bookID := r.series("A")
	id, _ := r.add(c, object{"permissions": []string{"metadata:write:year"}, "libraryIds": []string{library.String()}})
	one := object{"pluginId": id, "externalId": "1"}
	at := base + "/series/" + series.String() + "/metadata"
	done := c.Do("POST", at+"/apply", one).Want(200).Map()
	if list(done["appliedFields"]) != "year" || !strings.Contains(fmt.Sprint(done["skippedFields"]), "does not have the permission metadata:write:title") {
		t.Errorf("%v", done)
	}
	c.Do("PATCH", admin+"/"+id, object{"metadataTargets": []string{"book"}}).Want(200)
	c.Do("POST", at+"/preview", one).Want(400)
	c.Do("POST", base+"/books/"+bookID.String()+"/metadata/preview", one).Want(200)
	c.Do("PATCH", admin+"/"+id, object{"metadataTargets": nil, "libraryIds": []string{uuid.NewString()}}).Want(200)
	for path, status := range map[string]int{at + "/preview": 400, at + "/apply": 400, at + "/auto-match": 400, base + "/books/" + bookID.String() + "/metadata/apply": 400} {
		c.Do("POST", path, one).Want(status)
	}
	c.Do("POST", base+"/series/"+uuid.NewString()+"/metadata/preview", one).Want(404)
	c.Do("POST", at+"/preview", object{"pluginId": uuid.NewString(), "externalId": "1"}).Want(404)
	r.User(t, "one", "reader").Do("POST", at+"/preview", one).Want(403)
}

func TestBookOfAPlugin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	_, _, bookID := r.series("A")
	at := base + "/books/" + bookID.String()
	one := object{"pluginId": id, "externalId": "1"}
	c.Do("PUT", at+"/metadata/locks", object{"editionLock": true}).Want(200)
	if got := statuses(c.Do("POST", at+"/metadata/preview", one)); got["locked"] != " edition" || strings.Count(got["will_apply"], " ") != 18 {
		t.Errorf("%v", got)
	}
	done := c.Do("POST", at+"/metadata/apply", one).Want(200).Map()
	if list(done["skippedFields"]) != "cover edition" || !strings.Contains(fmt.Sprint(done["skippedFields"]), "127.0.0.1 is not a public address") || done["message"] != "17 fields written" || r.heard() == "" {
		t.Errorf("%v", done)
	}
	m := c.Do("GET", at, nil).Want(200).Map()
	meta := m["metadata"].(object)
	if m["title"] != "The Given Book" || meta["subtitle"] != "A subtitle" || meta["edition"] != nil || m["volume"] != 3.0 || meta["isbns"] != `["9780306406157"]` ||
		meta["awards"].([]any)[0].(object)["name"] != "A Prize" || meta["locks"].(object)["titleLock"] != false || meta["locks"].(object)["editionLock"] != true {
		t.Errorf("%v", m)
	}
	if list(names(m["genres"])) != "Drama" || len(m["tags"].([]any)) != 0 {
		t.Errorf("genres %v, tags %v", m["genres"], m["tags"])
	}
	if got := statuses(c.Do("POST", at+"/metadata/preview", one)); got["will_apply"] != " cover" {
		t.Errorf("after it was written: %v", got)
	}
	// After the file was renamed.
	r.DB.Exec(t, "update book set title = 'A v22', volume = 22, chapter = null where id = $1", bookID)
	if got := statuses(c.Do("POST", at+"/metadata/preview", one)); got["will_apply"] != " title volume chapter cover" {
		t.Errorf("after its file was renamed: %v", got)
	}
	for _, f := range c.Do("POST", at+"/metadata/preview", one).Want(200).Map()["fields"].([]any) {
		if f := f.(object); f["field"] == "cover" && f["proposedValue"] != "http://127.0.0.1/large.jpg" {
			t.Errorf("of two covers: %v", f)
		}
	}
}

// People with a locked role stay, and so does the translator, a field of its own: what was written is not proposed
// again.
func TestPeopleOfABook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	_, _, bookID := r.series("A")
	at := base + "/books/" + bookID.String()
	people := func() string {
		var out []string
		for _, a := range c.Do("GET", at, nil).Want(200).Map()["metadata"].(object)["authors"].([]any) {
			out = append(out, fmt.Sprint(a.(object)["role"], " ", a.(object)["name"]))
		}
		return strings.Join(out, ", ")
	}
	c.Do("PATCH", at+"/metadata", object{"writer": "Mine", "coverArtist": "Her"}).Want(200)
	apply := func(want string) {
		t.Helper()
		done := c.Do("POST", at+"/metadata/apply", object{"pluginId": id, "externalId": "2"}).Want(200).Map()
		if got := people(); list(done["appliedFields"]) != want || got != "author A. Author, writer Mine, cover_artist Her, translator T. Lator" {
			t.Errorf("%v: %s", done, got)
		}
	}
	apply("authors translator")
	apply("")
}

// The release date of a book comes from releaseDate, as far as it is known and not locked.
func TestReleaseDateOfABook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	for _, x := range []struct{ said, locked, want string }{
		{"released:2001-02-15", "", "2001 2 15"},
		{"released:2001-02-15T00:00:00Z", "", "2001 2 15"},
		{"released:2001-02", "", "2001 2 <nil>"},
		{"released:2001", "", "2001 <nil> <nil>"},
		{"released:15 February", "", "<nil> <nil> <nil>"},
		{"released:2001-02-15", "year", "1999 <nil> <nil>"},
		{"released:1999-02-15", "year", "1999 2 15"},
		{"released:2001-02-15", "month", "2001 4 <nil>"},
	} {
		_, _, bookID := r.series("A" + x.said + x.locked)
		at := base + "/books/" + bookID.String()
		if n, ok := map[string]int{"year": 1999, "month": 4}[x.locked]; ok {
			c.Do("PATCH", at+"/metadata", object{x.locked: n}).Want(200)
		}
		c.Do("POST", at+"/metadata/apply", object{"pluginId": id, "externalId": x.said}).Want(200)
		if m := c.Do("GET", at, nil).Want(200).Map()["metadata"].(object); fmt.Sprint(m["year"], " ", m["month"], " ", m["day"]) != x.want {
			t.Errorf("%+v: %v %v %v", x, m["year"], m["month"], m["day"])
		}
	}
}

// Month and day of the file's date do not stay next to a plugin's year and month.
func TestReleaseDateOfABookThatHasAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	for _, x := range []struct {
		said, locked string
		fields       []string
		want         string
	}{
		{"2001", "", nil, "2001 <nil> <nil>"},
		{"2001", "monthLock", nil, "2001 5 <nil>"},
		{"2001", "dayLock", nil, "2001 <nil> 20"},
		{"2001-05", "", nil, "2001 5 <nil>"},
		{"2001-06", "", nil, "2001 6 <nil>"},
		{"2001-06-20", "", nil, "2001 6 20"},
		{"2001-06-20", "", []string{"year"}, "2001 <nil> 20"},
		{"2001-06-21", "", []string{"year"}, "2001 <nil> <nil>"},
		{"2010", "", nil, "2010 5 20"},
		{"2010-06", "", nil, "2010 6 <nil>"},
		{"2010-06-21", "", nil, "2010 6 21"},
		{"2001", "yearLock", nil, "2010 5 20"},
	} {
		_, _, bookID := r.series(fmt.Sprint(x))
		r.DB.Exec(t, `insert into book_metadata as m (tenant_id, book_id, metadata, locks) values ($1, $2, '{"year": 2010, "month": 5, "day": 20}', array_remove(array[$3], ''))
			on conflict (tenant_id, book_id) do update set metadata = excluded.metadata, locks = excluded.locks`, r.One, bookID, x.locked)
		at := base + "/books/" + bookID.String()
		c.Do("POST", at+"/metadata/apply", object{"pluginId": id, "externalId": "released:" + x.said, "fields": x.fields}).Want(200)
		if m := c.Do("GET", at, nil).Want(200).Map()["metadata"].(object); fmt.Sprint(m["year"], " ", m["month"], " ", m["day"]) != x.want {
			t.Errorf("%+v: %v %v %v", x, m["year"], m["month"], m["day"])
		}
	}
}

// A book gets the plugin's picture, and shows it unless the cover is locked; the plugin's previous one is deleted.
func TestPictureOfABook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	_, _, bookID := r.series("A")
	at := base + "/books/" + bookID.String()
	for i, step := range []struct {
		lock        bool
		told, shown string // widths of the pictures
	}{{false, "book_updated cover_updated", "17*"}, {true, "book_updated", "17* 18"}, {false, "book_updated cover_updated", "19*"}} {
		c.Do("PUT", at+"/metadata/locks", object{"coverLock": step.lock}).Want(200)
		r.mu.Lock()
		r.cover = testkit.JPEG(t, 17+i, 32, i)
		r.mu.Unlock()
		r.heard()
		done := c.Do("POST", at+"/metadata/apply", object{"pluginId": id, "externalId": "1", "fields": []string{"cover"}}).Want(200).Map()
		if list(done["appliedFields"]) != "cover" || list(done["skippedFields"]) != "" {
			t.Errorf("%v", done)
		}
		if got := r.heard(); got != step.told {
			t.Errorf("step %d told %q", i, got)
		}
		var shown string
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), `select string_agg(c.width || case when b.cover_source = 'custom:' || c.id then '*' else '' end, ' ' order by c.width)
			from book_cover c join book b on b.tenant_id = c.tenant_id and b.id = c.book_id where c.book_id = $1 and c.source = 'plugin:test'`, bookID).Scan(&shown); err != nil || shown != step.shown {
			t.Errorf("step %d: %s, %v", i, shown, err)
		}
	}
}

// What a plugin says again changes nothing: no field, no event, no date. Genres and tags are the same whatever their
// case, since the spelling that came first stays.
func TestNothingNewIsWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "admin")
	id, _ := r.add(c, nil)
	_, series, bookID := r.series("A")
	r.DB.Exec(t, "insert into genre (tenant_id, id, name) values ($1, gen_random_uuid(), 'FINE'), ($1, gen_random_uuid(), 'drama')", r.One)
	for at, external := range map[string]string{"/series/" + series.String(): "2", "/books/" + bookID.String(): "1"} {
		for i, lock := range []bool{false, true} {
			c.Do("PUT", base+at+"/metadata/locks", object{map[string]string{"2": "cover", "1": "coverLock"}[external]: lock}).Want(200)
			r.mu.Lock()
			r.cover = testkit.JPEG(t, 17+i, 32, i)
			r.mu.Unlock()
			apply := func() object {
				return c.Do("POST", base+at+"/metadata/apply", object{"pluginId": id, "externalId": external}).Want(200).Map()
			}
			if done := apply(); !strings.Contains(list(done["appliedFields"]), "cover") {
				t.Errorf("%s: %v", at, done)
			}
			if got := statuses(c.Do("POST", base+at+"/metadata/preview", object{"pluginId": id, "externalId": external})); got["will_apply"] != " cover" {
				t.Errorf("%s: %v", at, got)
			}
			before := c.Do("GET", base+at, nil).Want(200).Map()["updatedAt"]
			r.heard()
			done := apply()
			if got := list(done["appliedFields"]) + r.heard(); got != "" || strings.Contains(list(done["skippedFields"]), "cover") {
				t.Errorf("%s, %v: %v %s", at, lock, done, got)
			}
			if after := c.Do("GET", base+at, nil).Want(200).Map()["updatedAt"]; after != before {
				t.Errorf("%s, %v: updated at %v, then %v", at, lock, before, after)
			}
		}
	}
}
