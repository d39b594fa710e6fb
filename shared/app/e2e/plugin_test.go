package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	functions "github.com/longbox/longbox/shared/app/plugin"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/platform/plug/host"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/lambdakit"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

// plugins returns how the other functions reach the function plugin: as a server in this process, or by invoking the
// built program, with one function per tenant as with tenant isolation.
func (s *system) plugins() plug.Config {
	s.t.Helper()
	command, _, err := pluginkit.Command()
	if err != nil {
		s.t.Fatal(err)
	}
	c := functions.Config{Token: "token", Host: host.Config{Commands: plug.Commands{command}, Data: s.t.TempDir(), Processes: 4, Idle: time.Minute}}
	if programs != "" {
		srv := httptest.NewServer(&lambdas{s: s, config: c, tenants: map[string]*lambdakit.Function{}})
		s.t.Cleanup(srv.Close)
		return plug.Config{Commands: c.Host.Commands, Function: "plugin", Region: "us-east-1", Endpoint: srv.URL}
	}
	f, err := functions.New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(f.Host.Close)
	h, err := f.Handler()
	if err != nil {
		s.t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	s.t.Cleanup(srv.Close)
	return plug.Config{Commands: c.Host.Commands, URL: srv.URL, Token: c.Token}
}

// lambdas answers invocations like the Lambda API.
type lambdas struct {
	s      *system
	config functions.Config

	mu      sync.Mutex
	tenants map[string]*lambdakit.Function
}

func (l *lambdas) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant := r.Header.Get("X-Amz-Tenant-Id")
	if r.URL.Path != "/2015-03-31/functions/plugin/invocations" || !strings.Contains(r.Header.Get("Authorization"), "/us-east-1/lambda/aws4_request") || tenant == "" {
		http.Error(w, "no such function, or no signature", http.StatusForbidden)
		return
	}
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, err := l.of(tenant).Invoke(r.Context(), payload)
	if err != nil {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
		out = []byte(err.Error())
	}
	_, _ = w.Write(out)
}

// of returns a tenant's function.
func (l *lambdas) of(tenant string) *lambdakit.Function {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.tenants[tenant]
	if f == nil {
		f = lambdakit.New(lambdakit.Program{Name: "plugin", Path: filepath.Join(programs, "plugin"), Env: lambdakit.Environment(l.config), Output: l.s.log}, instances)
		l.tenants[tenant] = f
		l.s.t.Cleanup(f.Close)
	}
	return f
}

// plugin adds a plugin of tenant one that may write the year.
func (m *matrix) plugin(*testkit.Client) string {
	id := uuid.New()
	command, args, err := pluginkit.Command()
	if err != nil {
		m.t.Fatal(err)
	}
	m.exec(`insert into plugin (tenant_id, id, name, display_name, plugin_type, command, args, credential_delivery, enabled, permissions, use_existing_external_id)
		values ($1, $2::uuid, $2::text, 'Geheim', 'system', $3, $4, 'env', true, '{metadata:write:year}', true)`, m.One, id, command, args)
	return id.String()
}

// offeredPlugin adds a plugin of tenant one that users may enable and whose service they sign in to.
func (m *matrix) offeredPlugin(*testkit.Client) string {
	return m.pluginForUsers(`"oauth": {"authorizationUrl": "https://example.org/authorize", "tokenUrl": "https://example.org/token", "pkce": true}, `)
}

func (m *matrix) pluginForUsers(more string) string {
	id := uuid.New()
	command, args, err := pluginkit.Command("personal")
	if err != nil {
		m.t.Fatal(err)
	}
	m.exec(`insert into plugin (tenant_id, id, name, display_name, plugin_type, command, args, config, credential_delivery, enabled, use_existing_external_id, manifest)
		values ($1, $2::uuid, $2::text, 'Geheim', 'user', $3, $4, '{"oauth_client_id": "longbox"}', 'env', true, true, $5)`, m.One, id, command, args,
		`{`+more+`"name": "personal", "displayName": "Personal", "version": "1", "protocolVersion": "1", "capabilities": {"userReadSync": true, "userRecommendationProvider": true}}`)
	return id.String()
}

// userPlugin adds a plugin that a user has enabled.
func (m *matrix) userPlugin(c *testkit.Client) string {
	id := m.pluginForUsers("")
	m.exec("insert into user_plugin (tenant_id, id, account_id, plugin_id) select tenant_id, gen_random_uuid(), id, $2 from account where id = $1", c.ID, id)
	return id
}

// recommended returns a recommendation of such a plugin.
func (m *matrix) recommended(c *testkit.Client) string {
	id := m.userPlugin(c)
	m.exec(`update user_plugin set recommended_at = now(), recommendations_task_id = id, recommendations = jsonb_build_array(jsonb_build_object('externalId', $1::text, 'title', 'Geheim', 'score', 0.5))
		where plugin_id = $1::uuid`, id)
	return id
}

// searchedSeries returns the series and a plugin that would search for it.
func (m *matrix) searchedSeries(c *testkit.Client) string { return m.theSeries(c) + "|" + m.plugin(c) }

func (m *matrix) newPlugin(*testkit.Client) any {
	command, args, err := pluginkit.Command()
	if err != nil {
		m.t.Fatal(err)
	}
	m.n++
	return object{"name": fmt.Sprint("p", m.n), "displayName": "New", "command": command, "args": args, "enabled": true}
}

// asked returns a request to a plugin.
func (m *matrix) asked(*testkit.Client) any {
	return object{"pluginId": m.asker, "externalId": "1"}
}

func (m *matrix) askedAll(*testkit.Client) any {
	return object{"pluginId": m.asker, "seriesIds": []string{m.book.SeriesID.String()}}
}

// From adding a plugin to what its task has written.
func TestPluginFillsSeries(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "Saga/Saga 1.cbz", testkit.Comic(t, 1, 2, ""))
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	command, args, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	added := admin.Do("POST", "/api/v1/admin/plugins", object{"name": "test", "displayName": "Test", "command": command, "args": args, "enabled": true,
		"permissions": []string{"metadata:write:*"}, "credentials": object{"api_key": "s3cret"}}).Want(201).Map()
	if added["healthCheckPassed"] != true {
		t.Fatalf("%v", added)
	}
	plugin := added["plugin"].(object)["id"].(string)
	stop := s.work()
	defer stop()
	started := admin.Do("POST", "/api/v1/libraries/"+library.String()+"/metadata/auto-match/task", object{"pluginId": plugin}).Want(200).Map()
	if started["tasksEnqueued"] != 1.0 {
		t.Fatalf("%v", started)
	}
	var task object
	testkit.Eventually(t, 30*time.Second, func() bool { // it writes before it ends
		task = admin.Do("GET", "/api/v1/tasks?taskType=plugin_auto_match", nil).Want(200).Map()["data"].([]any)[0].(object)
		return task["status"] == "completed"
	})
	title := admin.Do("GET", "/api/v1/series?pageSize=1", nil).Want(200).Map()["data"].([]any)[0].(object)["title"]
	if title != "The Given Title" || task["result"].(object)["matched"] != true {
		t.Errorf("%v: %v", title, task)
	}
}

// Plugins are asked about series that a scan has found, once, and only if the tenant wants that.
func TestNewSeriesAreAskedAbout(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	command, args, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	for name, scopes := range map[string][]string{"asked": {"library:scan"}, "other": {"series:detail"}} {
		admin.Do("POST", "/api/v1/admin/plugins", object{"name": name, "displayName": name, "command": command, "args": args, "enabled": true, "scopes": scopes}).Want(201)
	}
	library := s.library(admin, "Books", "")
	tasks := func() float64 {
		return admin.Do("GET", "/api/v1/tasks?taskType=plugin_auto_match", nil).Want(200).Map()["total"].(float64)
	}
	testkit.WriteFile(t, s.folder, "Saga/Saga 1.cbz", testkit.Comic(t, 1, 2, ""))
	s.scan(admin, library)
	if n := tasks(); n != 0 {
		t.Errorf("%v tasks where nobody wants them", n)
	}
	admin.Do("PUT", "/api/v1/admin/settings/plugins.post_scan_auto_match_enabled", object{"value": "true"}).Want(200)
	testkit.WriteFile(t, s.folder, "Blacksad/Blacksad 1.cbz", testkit.Comic(t, 2, 2, ""))
	for range 2 {
		s.scan(admin, library)
		if n := tasks(); n != 1 {
			t.Errorf("%v tasks for one new series", n)
		}
	}
}
