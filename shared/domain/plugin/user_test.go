package plugin_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/domain/plugin"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

const user = base + "/user/plugins"

// personal adds a plugin for users, with arguments of pluginkit, and returns its id.
func (r *rig) personal(admin *testkit.Client, changes object, args ...string) string {
	r.t.Helper()
	_, all, _ := pluginkit.Command(append([]string{"personal"}, args...)...)
	body := object{"name": "personal", "displayName": "Personal", "pluginType": "user", "args": all, "permissions": []string{}, "scopes": []string{}}
	for k, v := range changes {
		body[k] = v
	}
	id, answer := r.add(admin, body)
	if answer["healthCheckPassed"] != true {
		r.t.Fatalf("%v", answer)
	}
	return id
}

// run runs the pending task of a type, and returns its result.
func (r *rig) run(typ string, do task.Handler) (any, error) {
	r.t.Helper()
	h := task.Held{Tenant: r.One, Type: typ, Epoch: 1}
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), `update task set status = 'running', lease_epoch = 1, lease_until = now() + interval '1 hour'
		where type = $1 and status = 'pending' returning id, params, place`, typ).Scan(&h.ID, &h.Params, &h.Place); err != nil {
		r.t.Fatal(err)
	}
	out, err := do(db.In(context.Background(), h.Scope()), h)
	r.DB.Exec(r.t, "update task set status = case when $2 then 'completed' else 'failed' end, completed_at = now() where id = $1", h.ID, err == nil)
	return out, err
}

// shelf adds a series with volumes 1 to n and an id at the plugin's service, and returns the ids of the books.
func (r *rig) shelf(title, externalID string, n int) (series uuid.UUID, books []uuid.UUID) {
	r.t.Helper()
	library, series, first := r.series(title)
	r.DB.Exec(r.t, "update book set volume = 1, number = 1 where id = $1", first)
	books = append(books, first)
	for i := 2; i <= n; i++ {
		id := uuid.New()
		r.DB.Exec(r.t, `insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, volume, number)
			values ($1, $2, $3, $4, $5, 10, now(), 'cbz', $5, $5, $5, $6::integer, $6::integer)`, r.One, id, library, series, fmt.Sprintf("%s %d.cbz", title, i), i)
		books = append(books, id)
	}
	r.DB.Exec(r.t, "update series set book_count = $2, search_title = lower(title) where id = $1", series, n)
	if externalID != "" {
		r.DB.Exec(r.t, "insert into external_id (tenant_id, id, series_id, source, external_id) values ($1, gen_random_uuid(), $2, 'personal', $3)", r.One, series, externalID)
	}
	return series, books
}

// rates rates a series for a user.
func (r *rig) rates(c *testkit.Client, series uuid.UUID, rating int, notes string) {
	r.t.Helper()
	r.DB.Exec(r.t, `insert into series_rating (tenant_id, account_id, series_id, id, rating, notes)
		values ($1, $2, $3, gen_random_uuid(), $4, $5)`, r.One, c.ID, series, rating, notes)
}

func TestUsersHavePlugins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c, other := r.User(t, "one", "admin"), r.User(t, "one", "reader"), r.User(t, "one", "reader")
	id := r.personal(admin, nil, "token")
	system, _ := r.add(admin, nil)
	all := c.Do("GET", user, nil).Want(200).Map()
	available := all["available"].([]any)
	if len(all["enabled"].([]any)) != 0 || len(available) != 1 {
		t.Fatalf("%v", all)
	}
	if m := available[0].(object); m["pluginId"] != id || m["displayName"] != "Personal" || m["requiresOauth"] != false || m["oauthConfigured"] != false ||
		m["userSetupInstructions"] != "Enter your token" || m["capabilities"].(object)["readSync"] != true || m["capabilities"].(object)["wantsDetailedProgress"] != false {
		t.Errorf("%v", m)
	}
	c.Do("GET", user+"/"+id, nil).Want(404)
	c.Do("POST", user+"/"+system+"/enable", nil).Want(400)
	c.Do("POST", user+"/"+uuid.NewString()+"/enable", nil).Want(404)
	m := c.Do("POST", user+"/"+id+"/enable", nil).Want(200).Map()
	if m["enabled"] != true || m["connected"] != false || m["requiresAuth"] != true || m["autoSync"] != false || m["healthStatus"] != "unknown" ||
		m["userConfigSchema"].(object)["fields"].([]any)[0].(object)["key"] != "shelf" || m["pluginType"] != "user" {
		t.Errorf("%v", m)
	}
	c.Do("POST", user+"/"+id+"/enable", nil).Want(409)
	other.Do("GET", user+"/"+id, nil).Want(404)
	if got := admin.Do("GET", base+"/admin/plugins/"+id, nil).Want(200).Map(); got["userCount"] != 1.0 {
		t.Errorf("%v", got["userCount"])
	}
	// The user's config.
	for _, bad := range []any{nil, 1, []int{}, object{"syncMode": "sideways"}, object{"_codex": 1}, object{"_codex": object{"autoSync": "yes"}}, object{"a": "\x00"}, object{"a": strings.Repeat("x", 64<<10)}} {
		c.Do("PATCH", user+"/"+id+"/config", object{"config": bad}).Want(400)
	}
	m = c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"shelf": "Reading", "_codex": object{"syncRatings": false}}}).Want(200).Map()
	if m["config"].(object)["shelf"] != "Reading" || m["autoSync"] != false {
		t.Errorf("%v", m)
	}
	m = c.Do("PATCH", user+"/"+id+"/sync-mode", object{"auto": true}).Want(200).Map()
	if host := m["config"].(object)["_codex"].(object); m["autoSync"] != true || host["syncRatings"] != false || m["config"].(object)["shelf"] != "Reading" {
		t.Errorf("%v", m)
	}
	// Credentials are tested, and never shown.
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": " "}).Want(400)
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": strings.Repeat("x", 8<<10+1)}).Want(400)
	if got := c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "wrong"}).Want(400); strings.Contains(string(got.Body), "wrong is") || !strings.Contains(string(got.Body), "is refused") {
		t.Errorf("%s", got.Body)
	}
	got := c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(200)
	if m := got.Map(); m["connected"] != true || m["externalUsername"] != "reader-t0ken" || m["externalAvatarUrl"] != "https://example.org/a.png" || m["healthStatus"] != "healthy" {
		t.Errorf("%v", m)
	}
	var stored string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select encode(credentials, 'escape') from user_plugin").Scan(&stored); err != nil || strings.Contains(stored, "t0ken") {
		t.Error(stored, err)
	}
	// Disabled, enabled, and removed.
	c.Do("POST", user+"/"+id+"/disable", nil).Want(200)
	c.Do("POST", user+"/"+id+"/sync", nil).Want(400)
	if m := c.Do("POST", user+"/"+id+"/enable", nil).Want(200).Map(); m["connected"] != true {
		t.Errorf("%v", m)
	}
	admin.Do("POST", base+"/admin/plugins/"+id+"/disable", nil).Want(200)
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["enabled"] != false || m["healthStatus"] != "disabled" {
		t.Errorf("%v", m)
	}
	c.Do("POST", user+"/"+id+"/sync", nil).Want(400)
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(400)
	if m := other.Do("GET", user, nil).Want(200).Map(); len(m["available"].([]any)) != 0 {
		t.Errorf("%v", m)
	}
	other.Do("POST", user+"/"+id+"/enable", nil).Want(400)
	c.Do("DELETE", user+"/"+id, nil).Want(204)
	c.Do("DELETE", user+"/"+id, nil).Want(404)
}

// However credentials are delivered, a user's own one wins over one of the same name that an administrator has set.
func TestCredentialsOfUsersWin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, object{"credentials": object{"access_token": "shared"}}, "token")
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	for _, delivery := range []string{"env", "init_message", "both"} {
		admin.Do("PATCH", base+"/admin/plugins/"+id, object{"credentialDelivery": delivery}).Want(200)
		if m := c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "mine"}).Want(200).Map(); m["externalUsername"] != "reader-mine" {
			t.Errorf("%s: %v", delivery, m["externalUsername"])
		}
	}
}

func TestProgressIsBroughtInStep(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, nil, "token", "detailed")
	first, books := r.shelf("First", "11", 3)
	second, _ := r.shelf("Second", "refused", 2)
	r.shelf("Third", "", 2)
	fourth, _ := r.shelf("Fourth", "", 3)
	c.Do("POST", base+"/books/"+books[0].String()+"/read", nil).Want(200)
	c.Do("POST", base+"/series/"+second.String()+"/read", nil).Want(200)
	other := r.User(t, "one", "reader") // of what this user reads and rates, the service hears nothing
	for _, b := range books[1:] {
		other.Do("POST", base+"/books/"+b.String()+"/read", nil).Want(200)
	}
	r.rates(other, first, 33, "Theirs")
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("POST", user+"/"+id+"/sync", nil).Want(400) // not connected
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(200)
	remote := []any{object{"externalId": "11", "status": "reading", "progress": object{"volumes": 2}, "score": 70.0},
		object{"externalId": "404", "status": "completed"}, object{"externalId": "505", "title": "FOURTH", "status": "completed"},
		object{"externalId": "606", "title": "FIRST", "status": "completed"}} // First has another id there
	c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"remote": remote, "_codex": object{"searchFallback": true}}}).Want(200)
	if got := c.Do("GET", user+"/"+id+"/tasks", nil); got.Status != 204 {
		t.Error(got.Status)
	}
	m := c.Do("POST", user+"/"+id+"/sync", nil).Want(200).Map()
	c.Do("POST", user+"/"+id+"/sync", nil).Want(409)
	if last := c.Do("GET", user+"/"+id+"/tasks?type=user_plugin_sync", nil).Want(200).Map(); last["taskId"] != m["taskId"] || last["status"] != "pending" {
		t.Errorf("%v", last)
	}
	out, err := r.run(task.UserPluginSync, r.runner.Sync)
	if err != nil {
		t.Fatal(err)
	}
	res := *out.(*plugin.SyncResult)
	if res.Pulled != 4 || res.Matched != 2 || res.Applied != 2 || res.Pushed != 1 || res.PushFailures != 1 || res.PullError != nil || *res.ExternalUsername != "reader-t0ken" {
		data, _ := json.Marshal(res)
		t.Errorf("%s", data)
	}
	read := func(series uuid.UUID) (n int) {
		t.Helper()
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), `select count(*) from progress p join book b on b.id = p.book_id
			where b.series_id = $1 and p.account_id = $2 and p.completed`, series, c.ID).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if read(first) != 2 || read(fourth) != 3 {
		t.Errorf("%d %d", read(first), read(fourth))
	}
	var score int
	var device, pushed string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), `select (select rating from series_rating where series_id = $1 and account_id = $3),
		(select string_agg(distinct device_id, ' ') from reading_session s join book b on b.id = s.book_id where b.series_id = $2), (select data from user_plugin_data where key = 'pushed')`,
		first, fourth, c.ID).Scan(&score, &device, &pushed); err != nil || score != 70 || device != "plugin:personal" {
		t.Error(score, device, err)
	}
	for _, want := range []string{`"externalId":"11"`, `"volumes":2`, `"score":70`, `"readBooks":[{"volume":1,"completed":true`, `"status":"completed"`} {
		if !strings.Contains(pushed, want) {
			t.Errorf("%s is not in %s", want, pushed)
		}
	}
	if strings.Contains(pushed, "Third") || strings.Contains(pushed, "Theirs") || strings.Contains(pushed, `"score":33`) {
		t.Errorf("%s", pushed)
	}
	st := c.Do("GET", user+"/"+id+"/sync/status?live=true", nil).Want(200).Map()
	if st["lastSyncAt"] == nil || st["externalCount"] != 4.0 || st["pendingPush"] != 1.0 || st["liveError"] != nil || st["connected"] != true {
		t.Errorf("%v", st)
	}
	if mine := c.Do("GET", user+"/"+id, nil).Want(200).Map(); mine["lastSyncResult"].(object)["applied"] != 2.0 || mine["lastSyncAt"] == nil {
		t.Errorf("%v", mine)
	}
	// The administrator sees how much is stored, and may delete it.
	if all := admin.Do("GET", base+"/admin/plugin-storage", nil).Want(200).Map(); all["totalFileCount"] != 1.0 || all["totalBytes"].(float64) < 100 {
		t.Errorf("%v", all)
	}
	c.Do("GET", base+"/admin/plugin-storage", nil).Want(403)
	if got := admin.Do("DELETE", base+"/admin/plugin-storage/personal", nil).Want(200).Map(); got["filesDeleted"] != 1.0 {
		t.Errorf("%v", got)
	}
	admin.Do("GET", base+"/admin/plugin-storage/other", nil).Want(404)
	// A failed half is reported; if both fail, the task fails. That counts for the user, not for the plugin.
	config := func(host object, fails, mode string) {
		c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"fails": fails, "syncMode": mode, "_codex": host}}).Want(200)
		c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	}
	config(object{}, "sync/pushProgress", "both")
	out, err = r.run(task.UserPluginSync, r.runner.Sync)
	if err != nil {
		t.Fatal(err)
	}
	if res := out.(*plugin.SyncResult); res.PushError == nil || strings.Contains(*res.PushError, "t0ken") || res.PullError != nil || res.Pushed != 0 {
		t.Errorf("%+v", res)
	}
	config(object{}, "sync/pullProgress", "pull")
	if _, err = r.run(task.UserPluginSync, r.runner.Sync); err == nil || !strings.Contains(err.Error(), "sync/pullProgress fails") {
		t.Error(err)
	}
	if st := c.Do("GET", user+"/"+id+"/sync/status", nil).Want(200).Map(); st["failureCount"] != 1.0 || st["healthStatus"] != "unhealthy" || st["lastFailureAt"] == nil {
		t.Errorf("%v", st)
	}
	config(object{"includeCompleted": false, "includeInProgress": false}, "", "push")
	if out, err = r.run(task.UserPluginSync, r.runner.Sync); err != nil || out.(*plugin.SyncResult).Pushed != 0 || out.(*plugin.SyncResult).Pulled != 0 {
		t.Errorf("%+v %v", out, err)
	}
	if p := admin.Do("GET", base+"/admin/plugins/"+id, nil).Want(200).Map(); p["enabled"] != true || p["failureCount"] != 0.0 {
		t.Errorf("%v", p)
	}
	// Nothing is requested for a disabled user.
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	r.DB.Exec(t, "update account set is_active = false where id = (select account_id from user_plugin)")
	if _, err = r.run(task.UserPluginSync, r.runner.Sync); err == nil {
		t.Error("a disabled user's progress was told")
	}
}

// With both halves, nothing is sent unless all that the service has was read: it may have more progress.
func TestNothingIsSentAfterHalfAPull(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "reader")
	id := r.personal(r.User(t, "one", "admin"), nil)
	for _, called := range []string{"11", "12"} {
		_, books := r.shelf("Series "+called, called, 3)
		c.Do("POST", base+"/books/"+books[0].String()+"/read", nil).Want(200)
	}
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	further := object{"externalId": "11", "status": "reading", "progress": object{"volumes": 10}}
	many := `"` + strings.Repeat(uuid.NewString()+`","`, 4999) + uuid.NewString() + `"`
	for name, x := range map[string]struct {
		config object
		place  string
		pushed float64
		why    string // in pushError
	}{
		"it fails":                {object{"fails": "sync/pullProgress"}, `{}`, 0, "sync/pullProgress fails"},
		"it fails, only a push":   {object{"fails": "sync/pullProgress", "syncMode": "push"}, `{}`, 2, ""},
		"it does not offer it":    {object{"fails": "sync/pullProgress", "code": -32601}, `{}`, 2, ""},
		"an entry without an id":  {object{"remote": []any{5}}, `{}`, 0, "entry without a readable externalId"},
		"an entry with an id":     {object{"remote": []any{object{"externalId": "11", "score": "high"}}}, `{}`, 1, ""},
		"more without a cursor":   {object{"remote": []any{further}, "endless": true}, `{}`, 0, "nextCursor"},
		"too many pages":          {object{"remote": []any{object{"externalId": "9"}, further}}, `{"parts": 199}`, 0, "more than 200 pages"},
		"many with more progress": {object{"remote": []any{further}}, `{"ahead": [` + many + `]}`, 0, "more than 5000 series"},
		"all":                     {object{"remote": []any{object{"externalId": "9"}, further}}, `{}`, 1, ""},
	} {
		c.Do("PATCH", user+"/"+id+"/config", object{"config": x.config}).Want(200)
		c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
		r.DB.Exec(t, "update task set place = $1 where status = 'pending'", x.place)
		_, _ = r.run(task.UserPluginSync, r.runner.Sync) // fails if both halves do
		got := c.Do("GET", user+"/"+id, nil).Want(200).Map()["lastSyncResult"].(object)
		why, _ := got["pushError"].(string)
		if got["pushed"] != x.pushed || !strings.Contains(why, x.why) || (why == "") != (x.why == "") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A book that was finished here before and is being read again, or was marked as unread since, stays what the user made
// it, although the service still has it as read.
func TestWhatIsReadAgainStaysOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, nil, "token")
	_, books := r.shelf("First", "11", 3)
	at := func(i int) string { return base + "/books/" + books[i].String() }
	for i := range 2 {
		c.Do("POST", at(i)+"/read", nil).Want(200)
	}
	c.Do("PUT", at(0)+"/progress", object{"current_page": 1, "is_completed": false}).Want(200)
	c.Do("POST", at(1)+"/unread", nil).Want(204)
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(200)
	remote := []any{object{"externalId": "11", "status": "reading", "progress": object{"volumes": 3}}}
	c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"remote": remote}}).Want(200)
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	if _, err := r.run(task.UserPluginSync, r.runner.Sync); err != nil {
		t.Fatal(err)
	}
	if p := c.Do("GET", at(0)+"/progress", nil).Want(200).Map(); p["completed"] != false || p["currentPage"] != 1.0 {
		t.Errorf("the book that is read again: %v", p)
	}
	c.Do("GET", at(1)+"/progress", nil).Want(204)
	if p := c.Do("GET", at(2)+"/progress", nil).Want(200).Map(); p["completed"] != true {
		t.Errorf("the book that only the service has as read: %v", p)
	}
}

// Series with the same id at a service, such as editions, are pushed as one entry with the further progress.
func TestEditionsAreToldAsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, nil, "token")
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(200)
	for title, reads := range map[string][]int{"Long": {5, 4}, "Short": {3, 1}} {
		_, books := r.shelf(title, "11", reads[0])
		for _, b := range books[:reads[1]] {
			c.Do("POST", base+"/books/"+b.String()+"/read", nil).Want(200)
		}
	}
	r.DB.Exec(t, "update series set total_volume_count = 10")
	for _, x := range []struct{ knows, told int }{{3, 1}, {9, 0}} {
		remote := []any{object{"externalId": "11", "status": "reading", "progress": object{"volumes": x.knows}}}
		c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"remote": remote}}).Want(200)
		c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
		out, err := r.run(task.UserPluginSync, r.runner.Sync)
		if err != nil {
			t.Fatal(err)
		}
		var entries, progress string
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), `select jsonb_path_query_array(data::jsonb, '$[*].entries[*].status')::text, jsonb_path_query_first(data::jsonb, '$[*].entries[*].progress')::text
			from user_plugin_data where key = 'pushed'`).Scan(&entries, &progress); err != nil {
			t.Fatal(err)
		}
		if got := out.(*plugin.SyncResult); got.Pushed != x.told || got.Matched != 1 || entries != `["reading"]` ||
			progress != `{"volumes": 4, "maxVolume": 4, "totalVolumes": 10}` {
			t.Errorf("it knows %d: %+v, %s %s", x.knows, got, entries, progress)
		}
	}
}

// One task at a time uses a plugin for a user; a permanent rejection ends a task, and a checkpoint is resumed.
func TestTasksOfUsers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, nil, "token")
	r.shelf("First", "11", 2)
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(200)
	sync := func(place string) (any, error) {
		t.Helper()
		c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
		r.DB.Exec(t, "update task set place = $1 where status = 'pending'", place)
		return r.run(task.UserPluginSync, r.runner.Sync)
	}
	r.DB.Exec(t, "update user_plugin set held_by = gen_random_uuid(), held_until = now() + interval '1 minute'")
	if _, err := sync(`{}`); err == nil || !strings.Contains(fmt.Sprintf("%T", err), "paused") {
		t.Errorf("another task has it: %v", err)
	}
	r.DB.Exec(t, "update user_plugin set held_until = now() - interval '1 minute'") // its worker died
	if _, err := sync(`{}`); err != nil {
		t.Error(err)
	}
	var held bool
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select held_by is not null from user_plugin").Scan(&held); err != nil || held {
		t.Error("it stays held", err)
	}
	// A task whose worker was killed still holds the plugin, and continues.
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	r.DB.Exec(t, "update user_plugin set held_by = (select id from task where status = 'pending'), held_until = now() + interval '1 minute'")
	if _, err := r.run(task.UserPluginSync, r.runner.Sync); err != nil {
		t.Error(err)
	}
	// If another task has taken over an expired hold, it keeps it.
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	taken := false
	r.onCall = func(string) {
		if !taken {
			taken = true
			r.DB.Exec(t, "update user_plugin set held_by = id, held_until = now() + interval '1 minute'")
		}
	}
	_, err := r.run(task.UserPluginSync, r.runner.Sync)
	r.onCall = nil
	if got := r.text("select held_by = id from user_plugin"); err != nil || got != "true" {
		t.Errorf("it is held: %q %v", got, err)
	}
	r.DB.Exec(t, "update user_plugin set held_by = null, held_until = null")
	// If the user disables the plugin meanwhile, nothing more is sent.
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	r.onCall = func(method string) {
		switch method {
		case "sync/pullProgress":
			r.DB.Exec(t, "update user_plugin set enabled = false")
		case "sync/pushProgress":
			t.Error("progress was told to a plugin that was disabled")
		}
	}
	_, err = r.run(task.UserPluginSync, r.runner.Sync)
	r.onCall = nil
	if !fault.Is(err, fault.BadRequest) || !strings.Contains(err.Error(), "has been disabled") {
		t.Errorf("%v", err)
	}
	r.DB.Exec(t, "update user_plugin set enabled = true")
	// A checkpoint after the pull: nothing is pushed if only a pull was wanted.
	c.Do("POST", base+"/series/"+r.seriesOf("First")+"/read", nil).Want(200)
	config := func(values object) {
		t.Helper()
		c.Do("PATCH", user+"/"+id+"/config", object{"config": values}).Want(200)
	}
	config(object{"syncMode": "pull", "remote": []any{object{"externalId": "11", "status": "reading"}}})
	out, err := sync(`{"told": true, "parts": 1, "result": {"pulled": 7}}`)
	if err != nil || out.(*plugin.SyncResult).Pushed != 0 || out.(*plugin.SyncResult).Pulled != 7 {
		t.Errorf("%+v %v", out, err)
	}
	// In two parts, the first of which is done.
	config(object{"syncMode": "both", "remote": []any{object{"externalId": "9"}, object{"externalId": "11", "status": "dropped"}, 5, object{"externalId": "12", "startedAt": "soon"}}})
	out, err = sync(`{"cursor": "rest", "parts": 1, "result": {"pulled": 1}}`)
	if err != nil {
		t.Fatal(err)
	}
	// A series that was dropped there stays dropped.
	if res := out.(*plugin.SyncResult); res.Pulled != 3 || res.Matched != 1 || !res.PullIncomplete || res.Pushed != 0 {
		t.Errorf("%+v", res)
	}
	// The 200th part is the last one.
	config(object{"syncMode": "pull", "remote": []any{object{"externalId": "9"}, object{"externalId": "10"}}})
	out, err = sync(`{"parts": 199}`)
	if err != nil || out.(*plugin.SyncResult).Pulled != 1 || !out.(*plugin.SyncResult).PullIncomplete {
		t.Errorf("%+v %v", out, err)
	}
	// An unknown user is detected at once.
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken2"}).Want(200)
	config(object{"fails": "sync/getUserInfo"})
	if _, err := sync(`{}`); !fault.Is(err, fault.BadRequest) || strings.Contains(err.Error(), "t0ken2") {
		t.Errorf("%v", err)
	}
	// If the conditions no longer hold when the task starts, no request is sent, and that is its result.
	config(object{})
	skips := func(sql, reason string) {
		t.Helper()
		synced := r.text("select last_sync_at::text from user_plugin")
		r.DB.Exec(t, sql)
		r.DB.Exec(t, `insert into task (tenant_id, id, type, priority, params) select tenant_id, gen_random_uuid(), 'user_plugin_sync', 1,
			jsonb_build_object('pluginId', plugin_id, 'userId', account_id) from user_plugin`)
		out, err := r.run(task.UserPluginSync, r.runner.Sync)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if res := out.(*plugin.SyncResult); res.SkippedReason == nil || *res.SkippedReason != reason || res.PluginID.String() != id || res.UserID != c.ID || res.Pushed+res.Pulled != 0 {
			t.Errorf("%s: %+v", reason, res)
		}
		m := c.Do("GET", user+"/"+id, nil).Want(200).Map()
		if last := m["lastSyncResult"].(object); last["skippedReason"] != reason || r.text("select last_sync_at::text from user_plugin") != synced {
			t.Errorf("%s: %v", reason, m)
		}
	}
	skips("update plugin set enabled = false", "disabled")
	skips("update plugin set enabled = true; update user_plugin set enabled = false", "disabled")
	skips("update user_plugin set enabled = true, credentials = null", "not_connected")
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(200)
	skips(`update plugin set manifest = jsonb_set(manifest, '{capabilities,userReadSync}', 'false')`, "not_capable")
}

// seriesOf returns the id of a series.
func (r *rig) seriesOf(title string) (id string) {
	r.t.Helper()
	if err := r.DB.Owner.Pool().QueryRow(r.t.Context(), "select id::text from series where title = $1", title).Scan(&id); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// What is hidden from a user is neither sent nor written.
func TestWhatIsHiddenIsNotToldToServices(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, nil)
	hidden, _ := r.shelf("Hidden", "11", 2)
	shown, _ := r.shelf("Shown", "12", 2)
	for _, s := range []uuid.UUID{hidden, shown} {
		c.Do("POST", base+"/series/"+s.String()+"/read", nil).Want(200)
	}
	more, _ := r.shelf("More", "13", 2)
	tag := uuid.New()
	r.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'adult')", r.One, tag)
	r.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $4), ($1, $3, $4)", r.One, hidden, more, tag)
	r.DB.Exec(t, "insert into sharing_grant (tenant_id, id, account_id, sharing_tag_id, mode) select $1, gen_random_uuid(), account_id, $2, 'deny' from progress limit 1", r.One, tag)
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"remote": []any{object{"externalId": "13", "status": "completed", "score": 9.0, "title": "More"}},
		"recommendations": []any{object{"externalId": "11", "title": "Of the service", "score": 0.5, "reason": "x"}}, "_codex": object{"searchFallback": true}}}).Want(200)
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	out, err := r.run(task.UserPluginSync, r.runner.Sync)
	if err != nil {
		t.Fatal(err)
	}
	if res := out.(*plugin.SyncResult); res.Matched != 0 || res.Pushed != 1 {
		t.Errorf("%+v", res)
	}
	c.Do("POST", base+"/user/recommendations/refresh", nil).Want(200)
	if _, err := r.run(task.UserPluginRecommendations, r.runner.Recommend); err != nil {
		t.Fatal(err)
	}
	var pushed, library string
	var n int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), `select (select data from user_plugin_data where key = 'pushed'), (select data from user_plugin_data where key = 'library'),
		(select count(*) from progress p join book b on b.id = p.book_id where b.series_id = $1)`, more).Scan(&pushed, &library, &n); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(pushed, "Hidden") || strings.Contains(library, "Hidden") || !strings.Contains(library, "Shown") || n != 0 {
		t.Errorf("%s %s %d", pushed, library, n)
	}
	if m := c.Do("GET", base+"/user/recommendations", nil).Want(200).Map()["recommendations"].([]any)[0].(object); m["codexSeriesId"] != nil || m["inCodex"] != false {
		t.Errorf("%v", m)
	}
	// Recommendations may name series hidden since: the plugin is asked again, once.
	recommended := func() int {
		return len(c.Do("GET", base+"/user/recommendations", nil).Want(200).Map()["recommendations"].([]any))
	}
	asked := func() (n int) {
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from task where type = $1 and status = 'pending'", task.UserPluginRecommendations).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if recommended() != 1 || asked() != 0 {
		t.Error("asked again though nothing has changed")
	}
	r.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) values ($1, $2, $3)", r.One, shown, tag)
	if n := recommended(); n != 0 || asked() != 1 {
		t.Errorf("%d are recommended though what they are based on is hidden, the plugin is asked %d times", n, asked())
	}
	r.DB.Exec(t, "update task set status = 'failed', completed_at = now() where type = $1 and status = 'pending'", task.UserPluginRecommendations)
	if recommended() != 0 || asked() != 0 {
		t.Error("asked again and again though it fails")
	}
	c.Do("POST", base+"/user/recommendations/refresh", nil).Want(200)
	if _, err := r.run(task.UserPluginRecommendations, r.runner.Recommend); err != nil || recommended() != 1 || asked() != 0 {
		t.Errorf("nothing is recommended any more: %v", err)
	}
}

// A key needs the permissions for what a plugin receives and changes in the user's name.
func TestKeysNeedWhatPluginsDo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	id := r.personal(admin, nil, "token")
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "t0ken"}).Want(200)
	lists, reads, both := r.Key(t, c, auth.BooksRead), r.Key(t, c, auth.ProgressRead), r.Key(t, c, auth.ProgressRead, auth.ProgressWrite)
	for _, op := range []struct {
		method, path string
		body         any
		reads, both  int
	}{
		{"GET", base + "/user/recommendations", nil, 200, 200},
		{"POST", base + "/user/recommendations/refresh", nil, 409, 409}, // it was requested by the first one
		{"POST", base + "/user/recommendations/x/dismiss", object{}, 404, 404},
		{"POST", user + "/" + id + "/enable", nil, 409, 409},
		{"PATCH", user + "/" + id + "/config", object{"config": object{}}, 403, 200},
		{"PATCH", user + "/" + id + "/sync-mode", object{"auto": true}, 403, 200},
		{"POST", user + "/" + id + "/credentials", object{"accessToken": "t0ken"}, 403, 200},
		{"POST", user + "/" + id + "/oauth/start", nil, 403, 400}, // its service has no sign-in
		{"POST", user + "/" + id + "/sync", nil, 403, 200},
	} {
		lists.Do(op.method, op.path, op.body).Want(403)
		reads.Do(op.method, op.path, op.body).Want(op.reads)
		both.Do(op.method, op.path, op.body).Want(op.both)
	}
	lists.Do("GET", user, nil).Want(200)
	lists.Do("GET", user+"/"+id, nil).Want(200)
}

func TestRecommendations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	at := base + "/user/recommendations"
	c.Do("GET", at, nil).Want(404)
	c.Do("POST", at+"/refresh", nil).Want(404)
	id := r.personal(admin, nil)
	series, _ := r.shelf("Here", "11", 1)
	c.Do("POST", base+"/series/"+series.String()+"/read", nil).Want(200)
	other := r.User(t, "one", "reader") // of what this user reads and rates, the plugin hears nothing
	theirs, _ := r.shelf("Elsewhere", "19", 1)
	other.Do("POST", base+"/series/"+theirs.String()+"/read", nil).Want(200)
	r.rates(other, series, 33, "Theirs")
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"recommendations": []any{
		object{"externalId": "11", "title": "Here", "score": 0.4, "reason": "You have it"},
		object{"externalId": "12", "title": "B\x00etter", "score": 7, "reason": "Because", "coverUrl": "javascript:1", "externalUrl": "https://example.org/12", "genres": []string{"Drama"}, "tags": []any{object{"name": "T", "category": "c", "rank": 3}}},
		// NUL in a config.
		object{"externalId": "", "title": "Nothing"}, object{"externalId": "13", "title": 13}, 5}}}).Want(400)
	c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"recommendations": []any{
		object{"externalId": "11", "title": "Here", "score": 0.4, "reason": "You have it"},
		object{"externalId": "12", "title": "Better", "score": 7, "reason": "Because", "coverUrl": "javascript:1", "externalUrl": "https://example.org/12", "genres": []string{"Drama"}, "tags": []any{object{"name": "T", "category": "c", "rank": 3}}},
		object{"externalId": "", "title": "Nothing"}, object{"externalId": "13", "title": 13}, 5}}}).Want(200)
	m := c.Do("GET", at, nil).Want(200).Map() // the first request for them
	source := m["sources"].([]any)[0].(object)
	if len(m["recommendations"].([]any)) != 0 || source["taskId"] == nil || source["taskStatus"] != "pending" || source["generatedAt"] != nil {
		t.Errorf("%v", m)
	}
	c.Do("POST", at+"/refresh", nil).Want(409)
	if _, err := r.run(task.UserPluginRecommendations, r.runner.Recommend); err != nil {
		t.Fatal(err)
	}
	m = c.Do("GET", at, nil).Want(200).Map()
	all := m["recommendations"].([]any)
	if len(all) != 2 || m["sources"].([]any)[0].(object)["generatedAt"] == nil {
		t.Fatalf("%v", m)
	}
	best, here := all[0].(object), all[1].(object)
	if best["externalId"] != "12" || best["score"] != 1.0 || best["coverUrl"] != nil || best["externalUrl"] != "https://example.org/12" || best["inCodex"] != false || best["source"] != "Personal" ||
		here["codexSeriesId"] != series.String() || here["inCodex"] != true || here["sourcePlugin"] != "personal" {
		t.Errorf("%v %v", best, here)
	}
	c.Do("POST", at+"/12/dismiss", object{"reason": "boring"}).Want(400)
	c.Do("POST", at+"/99/dismiss", object{}).Want(404)
	r.DB.Exec(t, "update user_plugin set dismissed = array(select 'd' || n from generate_series(1, 500) n)")
	c.Do("POST", at+"/12/dismiss", object{"reason": "not_interested"}).Want(200)
	// The oldest are dropped.
	if got := r.text("select concat_ws(' ', cardinality(dismissed), dismissed[1], dismissed[500]) from user_plugin"); got != "500 d2 12" {
		t.Errorf("%s were dismissed", got)
	}
	if _, err := r.run(task.UserPluginDismissal, r.runner.Dismiss); err != nil {
		t.Fatal(err)
	}
	var told string
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select data from user_plugin_data where key = 'dismissed'").Scan(&told); err != nil || !strings.Contains(told, `"reason":"not_interested"`) {
		t.Error(told, err)
	}
	if n := r.text("select count(*) from user_plugin_data where key = 'library'"); n != "0" {
		t.Error("what the plugin has deleted is kept")
	}
	c.Do("POST", at+"/refresh", nil).Want(200) // it does not come back, nor does one dismissed during the request
	r.onCall = func(method string) {
		if method == "recommendations/get" {
			c.Do("POST", at+"/11/dismiss", nil).Want(200)
		}
	}
	if _, err := r.run(task.UserPluginRecommendations, r.runner.Recommend); err != nil {
		t.Fatal(err)
	}
	r.onCall = nil
	if all := c.Do("GET", at, nil).Want(200).Map()["recommendations"].([]any); len(all) != 0 {
		t.Errorf("%v", all)
	}
	r.DB.Exec(t, "update user_plugin set dismissed = '{12}'")
	r.DB.Exec(t, "update task set status = 'completed', completed_at = now() where status = 'pending'")
	c.Do("POST", at+"/refresh", nil).Want(200)
	if _, err := r.run(task.UserPluginRecommendations, r.runner.Recommend); err != nil {
		t.Fatal(err)
	}
	if all := c.Do("GET", at, nil).Want(200).Map()["recommendations"].([]any); len(all) != 1 {
		t.Errorf("%v", all)
	}
	r.rates(c, series, 90, "Mine")
	for _, shared := range []bool{false, true} { // ratings are sent only if the user wants that
		c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"_codex": object{"syncRatings": shared}}}).Want(200)
		c.Do("POST", at+"/refresh", nil).Want(200)
		if _, err := r.run(task.UserPluginRecommendations, r.runner.Recommend); err != nil {
			t.Fatal(err)
		}
		if told := r.text("select data from user_plugin_data where key = 'library'"); strings.Contains(told, `"userRating":90,"userNotes":"Mine"`) != shared ||
			strings.Contains(told, "Theirs") || strings.Contains(told, "Elsewhere") {
			t.Errorf("shared %v: %s", shared, told)
		}
	}
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select data from user_plugin_data where key = 'library'").Scan(&told); err != nil ||
		!strings.Contains(told, `"readingStatus":"completed"`) || !strings.Contains(told, `"excludeIds":["12"]`) || !strings.Contains(told, `{"source":"personal","externalId":"11"}`) && !strings.Contains(told, `{"source": "personal", "externalId": "11"}`) {
		t.Error(told, err)
	}
	c.Do("POST", user+"/"+id+"/disable", nil).Want(200)
	c.Do("GET", at, nil).Want(404)
	c.Do("POST", at+"/refresh", nil).Want(404)
}

// Recommendations lock the plugin before the user's record of it, as other tasks and its deletion do. Otherwise they
// can wait for each other.
func TestRecommendationsLockThePluginFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "reader")
	id := r.personal(r.User(t, "one", "admin"), nil)
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	c.Do("POST", base+"/user/recommendations/refresh", nil).Want(200)
	other, err := r.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := other.Exec(t.Context(), "select from plugin where id = $1 for no key update", id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.run(task.UserPluginRecommendations, r.runner.Recommend)
		done <- err
	}()
	r.DB.AwaitLock(t)
	for _, sql := range []string{"set local lock_timeout = '500ms'", "update user_plugin set updated_at = now()"} {
		if _, err := other.Exec(t.Context(), sql); err != nil {
			t.Error(err)
		}
	}
	_ = other.Rollback(t.Context())
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Storage limits hold for concurrent requests, too.
func TestNoMoreIsKeptThanMayBe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.User(t, "one", "reader")
	id := r.personal(r.User(t, "one", "admin"), nil)
	c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
	for _, m := range []struct {
		keys, bytes int // stored meanwhile, that many of that size
		want        string
	}{{99, 10, "100"}, {100, 10, "100"}, {1, plug.MaxStorage - 2, "2"}, {1, plug.MaxStorage, "1"}} {
		r.DB.Exec(t, "delete from user_plugin_data")
		r.onCall = func(string) {
			r.DB.Exec(t, `insert into user_plugin_data (tenant_id, user_plugin_id, key, data, updated_at) select tenant_id, id, 'k' || n, repeat('1', $2), now()
				from user_plugin, generate_series(1, $1::integer) n on conflict do nothing`, m.keys, m.bytes)
		}
		c.Do("POST", base+"/user/recommendations/refresh", nil).Want(200)
		_, err := r.run(task.UserPluginRecommendations, r.runner.Recommend)
		r.onCall = nil
		if got := r.text("select count(*) from user_plugin_data"); err != nil || got != m.want {
			t.Errorf("%+v: %s are kept, %v", m, got, err)
		}
	}
	// Deleting another plugin's data leaves this one's alone.
	admin := r.User(t, "one", "admin")
	r.personal(admin, object{"name": "other"})
	if got := admin.Do("DELETE", base+"/admin/plugin-storage/other", nil).Want(200).Map(); got["filesDeleted"] != 0.0 || r.text("select count(*) from user_plugin_data") != "1" {
		t.Errorf("%v", got)
	}
	// Of too many recommendations the first ones are shown.
	many := []any{}
	for n := range 201 {
		many = append(many, object{"externalId": fmt.Sprint(n), "title": "T", "score": 0.5, "reason": "x"})
	}
	c.Do("PATCH", user+"/"+id+"/config", object{"config": object{"recommendations": many}}).Want(200)
	c.Do("POST", base+"/user/recommendations/refresh", nil).Want(200)
	if _, err := r.run(task.UserPluginRecommendations, r.runner.Recommend); err != nil {
		t.Fatal(err)
	}
	if got := r.text("select jsonb_array_length(recommendations) from user_plugin"); got != "200" {
		t.Errorf("%s recommendations", got)
	}
}

// provider is a service with a sign-in; it records requests.
type provider struct {
	address string
	asked   []url.Values
	status  int
	body    string
	then    func() // called before it responds, unless nil
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{status: 200}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		p.asked = append(p.asked, r.PostForm)
		if p.then != nil {
			p.then()
		}
		w.WriteHeader(p.status)
		fmt.Fprint(w, p.body)
	}))
	t.Cleanup(s.Close)
	p.address = s.URL
	return p
}

// back follows the redirect from a service to Longbox, with a browser's cookies.
func (r *rig) back(t *testing.T, query, cookie string) (status int, page string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.URL+user+"/oauth/callback?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "one.test"
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestUsersSignInToServices(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	service := newProvider(t)
	id := r.personal(admin, nil, service.address)
	c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(400) // no client id
	admin.Do("PATCH", base+"/admin/plugins/"+id, object{"config": object{"oauth_client_id": "longbox", "oauth_client_secret": "cl1ent"}}).Want(200)
	if m := c.Do("GET", user, nil).Want(200).Map()["available"].([]any)[0].(object); m["requiresOauth"] != true || m["oauthConfigured"] != true {
		t.Errorf("%v", m)
	}
	begin := func() (to url.Values, cookie string) {
		t.Helper()
		got := c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(200)
		u, err := url.Parse(got.Map()["redirectUrl"].(string))
		if err != nil || u.Host != "example.org" || u.Path != "/authorize" {
			t.Fatal(u, err)
		}
		cookie, _, _ = strings.Cut(got.Header.Get("Set-Cookie"), ";")
		return u.Query(), cookie
	}
	w, overHTTPS := httptest.NewRecorder(), httptest.NewRequest("POST", "https://one.test"+user+"/"+id+"/oauth/start", nil)
	overHTTPS.Header = c.Header
	if r.API.Router.ServeHTTP(w, overHTTPS); !strings.Contains(w.Header().Get("Set-Cookie"), "; Secure") {
		t.Errorf("over https: %d, %v", w.Code, w.Header())
	}
	r.DB.Exec(t, "delete from user_plugin_sign_in")
	to, cookie := begin()
	if to.Get("from") != "longbox" || to.Get("response_type") != "code" || to.Get("client_id") != "longbox" || to.Get("scope") != "read write" ||
		to.Get("code_challenge_method") != "S256" || to.Get("redirect_uri") != "http://one.test"+user+"/oauth/callback" {
		t.Errorf("%v", to)
	}
	state := url.Values{"state": {to.Get("state")}, "code": {"c0de"}, "session_state": {"x"}}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["connected"] != false || m["requiresOauth"] != true {
		t.Errorf("%v", m)
	}
	// Another browser, an invalid state, and a rejection.
	if status, page := r.back(t, state.Encode(), ""); status != 400 || !strings.Contains(page, "in this browser") {
		t.Error(status, page)
	}
	if status, _ := r.back(t, "code=c0de&state=made-up", "plugin_sign_in=made-up"); status != 400 {
		t.Error(status)
	}
	service.status, service.body = 400, `{"error":"invalid_grant"}`
	if status, page := r.back(t, state.Encode(), cookie); status != 400 || !strings.Contains(page, "invalid_grant") {
		t.Error(status, page)
	}
	service.status, service.body = 200, `{"access_token":"fr3sh","refresh_token":"again","expires_in":60}`
	if status, page := r.back(t, state.Encode(), cookie); status != 400 {
		t.Error("a state counts twice", status, page)
	}
	to, cookie = begin()
	if status, page := r.back(t, url.Values{"state": {to.Get("state")}, "error": {"access_denied"}, "error_description": {"<b>no</b>"}}.Encode(), cookie); status != 400 ||
		!strings.Contains(page, "access_denied &lt;b&gt;no") {
		t.Error(status, page)
	}
	to, cookie = begin()
	r.DB.Exec(t, `insert into user_plugin_data (tenant_id, user_plugin_id, key, data, updated_at) select tenant_id, id, 'name', '"known"', now() from user_plugin`)
	if status, page := r.back(t, url.Values{"state": {to.Get("state")}, "code": {"c0de"}}.Encode(), cookie); status != 200 || !strings.Contains(page, "window.close()") {
		t.Error(status, page)
	}
	got := service.asked[len(service.asked)-1]
	if sum := sha256.Sum256([]byte(got.Get("code_verifier"))); got.Get("grant_type") != "authorization_code" || got.Get("code") != "c0de" || got.Get("client_secret") != "cl1ent" ||
		got.Get("redirect_uri") != to.Get("redirect_uri") || base64.RawURLEncoding.EncodeToString(sum[:]) != to.Get("code_challenge") {
		t.Errorf("%v", got)
	}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["connected"] != true || m["externalUsername"] != "known-fr3sh" {
		t.Errorf("%v", m) // the plugin does not see what it has stored for the user
	}
	r.DB.Exec(t, "delete from user_plugin_data")
	// The token is renewed before it expires.
	sync := func() error {
		t.Helper()
		c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
		_, err := r.run(task.UserPluginSync, r.runner.Sync)
		return err
	}
	for _, seconds := range []string{"60", "86400"} { // a service may keep the refresh token
		service.body = `{"access_token":"newer","expires_in":"` + seconds + `"}`
		n := len(service.asked)
		if err := sync(); err != nil || len(service.asked) == n {
			t.Fatal(len(service.asked)-n, err)
		}
		if got := service.asked[len(service.asked)-1]; got.Get("grant_type") != "refresh_token" || got.Get("refresh_token") != "again" {
			t.Errorf("%v", got)
		}
	}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["externalUsername"] != "reader-newer" {
		t.Errorf("%v", m)
	}
	n := len(service.asked)
	if err := sync(); err != nil || len(service.asked) != n {
		t.Error("a token that holds was renewed", err)
	}
	// A task that is cancelled while it renews a token stores the new one: the old one is revoked.
	service.body = `{"access_token":"short","refresh_token":"once","expires_in":1}`
	to, cookie = begin()
	if status, page := r.back(t, url.Values{"state": {to.Get("state")}, "code": {"c0de"}}.Encode(), cookie); status != 200 {
		t.Fatal(status, page)
	}
	service.body = `{"access_token":"kept","refresh_token":"twice","expires_in":86400}`
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	if _, err := r.run(task.UserPluginSync, func(ctx context.Context, h task.Held) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		service.then = cancel
		return r.runner.Sync(ctx, h)
	}); err == nil {
		t.Error("a task that was cancelled went on")
	}
	n, service.then = len(service.asked), nil
	if err := sync(); err != nil || len(service.asked) != n {
		t.Error("the token that was given is not kept", err)
	}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["externalUsername"] != "reader-kept" {
		t.Errorf("%v", m)
	}
	// A service that does not respond is asked later; one that rejects the token makes the user sign in again.
	again := func() {
		t.Helper()
		service.status, service.body = 200, `{"access_token":"short","refresh_token":"gone","expires_in":1}`
		to, cookie := begin()
		if status, page := r.back(t, url.Values{"state": {to.Get("state")}, "code": {"c0de"}}.Encode(), cookie); status != 200 {
			t.Fatal(status, page)
		}
	}
	// The new token is stored even if the database loses its connections just then.
	again()
	service.body = `{"access_token":"stored","refresh_token":"after","expires_in":86400}`
	service.then = func() {
		conn, err := pgx.Connect(context.Background(), r.DB.AppURL)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), `select pg_terminate_backend(pid, 5000) from pg_stat_activity
			where datname = current_database() and usename = current_user and pid <> pg_backend_pid()`); err != nil {
			t.Error(err)
		}
	}
	c.Do("POST", user+"/"+id+"/sync", nil).Want(200)
	_, _ = r.run(task.UserPluginSync, r.runner.Sync) // what follows may fail with the other connections
	n, service.then = len(service.asked), nil
	r.DB.App.Pool().Reset()
	if err := sync(); err != nil || len(service.asked) != n {
		t.Errorf("the token that was given is not kept: %v", err)
	}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["connected"] != true || m["externalUsername"] != "reader-stored" {
		t.Errorf("%v", m)
	}
	// A token entered meanwhile wins, whatever the service says about the old one.
	for status, body := range map[int]string{200: `{"access_token":"late","refresh_token":"later","expires_in":86400}`, 400: `{"error":"invalid_grant"}`} {
		again()
		service.status, service.body = status, body
		service.then = func() { c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "entered"}).Want(200) }
		err := sync()
		service.then = nil
		if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); err != nil || m["externalUsername"] != "reader-entered" {
			t.Errorf("%d: %v %v", status, m, err)
		}
		n := len(service.asked)
		if err := sync(); err != nil || len(service.asked) != n { // it never expires
			t.Errorf("%d: what was entered is not kept: %v", status, err)
		}
	}
	// The live status renews it, too, but not while a task may be renewing it.
	again()
	service.body = `{"access_token":"live","refresh_token":"gone","expires_in":86400}`
	n = len(service.asked)
	r.DB.Exec(t, "update user_plugin set held_by = id, held_until = now() + interval '1 minute'")
	if st := c.Do("GET", user+"/"+id+"/sync/status?live=true", nil).Want(200).Map(); st["liveError"] == nil || len(service.asked) != n {
		t.Errorf("while a task has it: %v", st)
	}
	r.DB.Exec(t, "update user_plugin set held_by = null, held_until = null")
	if st := c.Do("GET", user+"/"+id+"/sync/status?live=true", nil).Want(200).Map(); st["liveError"] != nil || len(service.asked) != n+1 {
		t.Errorf("the token was renewed %d times: %v", len(service.asked)-n, st)
	}
	if got := r.text("select held_by from user_plugin"); got != "" {
		t.Error("it stays held by", got)
	}
	again()
	service.status = 503
	if err := sync(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Error(err)
	}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["connected"] != true {
		t.Errorf("%v", m)
	}
	service.status, service.body = 400, `{"error":"invalid_grant"}`
	if err := sync(); err == nil || !strings.Contains(err.Error(), "sign in again") {
		t.Error(err)
	}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["connected"] != false {
		t.Errorf("%v", m)
	}
	for range 3 {
		begin()
	}
	c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(429)
}

// A sign-in is completed by the browser that started it, in time, with a response of the right service, and while the
// plugin is enabled. Otherwise no request is sent to the service.
func TestSignInsThatDoNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin, c := r.User(t, "one", "admin"), r.User(t, "one", "reader")
	service := newProvider(t)
	service.body = `{"access_token":"t0ken"}`
	id := r.personal(admin, object{"config": object{"oauth_client_id": "longbox"}}, service.address)
	finish := func(meanwhile string, change func(q url.Values, cookie string) string) (status int, page string) {
		t.Helper()
		r.DB.Exec(t, "delete from user_plugin_sign_in")
		got := c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(200)
		to, err := url.Parse(got.Map()["redirectUrl"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if meanwhile != "" {
			r.DB.Exec(t, meanwhile)
		}
		cookie, _, _ := strings.Cut(got.Header.Get("Set-Cookie"), ";")
		q := url.Values{"state": {to.Query().Get("state")}, "code": {"c0de"}}
		cookie = change(q, cookie)
		return r.back(t, q.Encode(), cookie)
	}
	same := func(_ url.Values, cookie string) string { return cookie }
	says := func(iss string) func(url.Values, string) string {
		return func(q url.Values, cookie string) string {
			q.Set("iss", iss)
			return cookie
		}
	}
	for _, bad := range []struct {
		words, meanwhile, after string
		change                  func(q url.Values, cookie string) string
	}{
		{"in this browser", "", "", func(_ url.Values, cookie string) string { return cookie + "x" }},
		{"start again", "update user_plugin_sign_in set expires_at = now() - interval '1 second'", "", same},
		{"has been disabled", "update plugin set enabled = false", "update plugin set enabled = true", same},
		{"no valid token address", `update plugin set manifest = jsonb_set(manifest, '{oauth,tokenUrl}', '"file:///etc/passwd"')`,
			`update plugin set manifest = jsonb_set(manifest, '{oauth,tokenUrl}', to_jsonb('` + service.address + `'::text))`, same},
		{"another service", "", "", says("https://example.com")},
		{"another service", "", "", says("http://example.org")},
	} {
		if status, page := finish(bad.meanwhile, bad.change); status != 400 || !strings.Contains(page, bad.words) {
			t.Errorf("%s: %d %s", bad.words, status, page)
		}
		if bad.after != "" {
			r.DB.Exec(t, bad.after)
		}
	}
	if len(service.asked) != 0 {
		t.Errorf("%v", service.asked)
	}
	service.body = `{"access_token":"` + strings.Repeat("x", 40_000) + `"}`
	if status, page := finish("", same); status != 400 || strings.Contains(page, "xxxx") {
		t.Errorf("an endless token: %d %.200s", status, page)
	}
	if m := c.Do("GET", user+"/"+id, nil).Want(200).Map(); m["connected"] != false {
		t.Errorf("%v", m)
	}
	service.body = `{"access_token":"t0ken"}`
	if status, page := finish("", says("https://example.org")); status != 200 {
		t.Error(status, page)
	}
	// Expired sign-ins do not count towards the limit.
	for range 3 {
		c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(200)
	}
	r.DB.Exec(t, "update user_plugin_sign_in set expires_at = now() - interval '1 second'")
	c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(200)
	if n := r.text("select count(*) from user_plugin_sign_in"); n != "1" {
		t.Errorf("%s sign-ins are kept", n)
	}
	// A disabled plugin, or a system plugin, has no sign-in.
	r.DB.Exec(t, "update plugin set enabled = false")
	c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(400)
	r.DB.Exec(t, "update plugin set enabled = true, plugin_type = 'system'")
	c.Do("POST", user+"/"+id+"/oauth/start", nil).Want(404)
}

func TestPluginsSyncBySchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.User(t, "one", "admin")
	id := r.personal(admin, object{"syncCronSchedule": "0 0 3 * * *"}, "token")
	users := []*testkit.Client{r.User(t, "one", "reader"), r.User(t, "one", "reader"), r.User(t, "one", "reader"), r.User(t, "one", "reader"), r.User(t, "one", "reader")}
	for i, c := range users { // the first meets all conditions, each other one lacks something
		c.Do("POST", user+"/"+id+"/enable", nil).Want(200)
		if i != 1 {
			c.Do("POST", user+"/"+id+"/credentials", object{"accessToken": "x"}).Want(200)
		}
		if i != 2 {
			c.Do("PATCH", user+"/"+id+"/sync-mode", object{"auto": true}).Want(200)
		}
		if i == 3 {
			c.Do("POST", user+"/"+id+"/disable", nil).Want(200)
		}
	}
	r.DB.Exec(t, "update account set is_active = false where id = $1", users[4].ID)
	r.DB.Exec(t, `update plugin set manifest = manifest || '{"oauth": null}'`)
	odd := r.personal(admin, object{"name": "odd", "syncCronSchedule": "0 0 3 * * *"})
	r.DB.Exec(t, `update plugin set manifest = manifest || '{"requiredCredentials": null, "oauth": {}}' where id = $1`, odd)
	users[1].Do("POST", user+"/"+odd+"/enable", nil).Want(200)
	users[1].Do("PATCH", user+"/"+odd+"/sync-mode", object{"auto": true}).Want(200)
	night := time.Date(2027, 3, 1, 2, 59, 0, 0, time.UTC)
	due := func(now time.Time, want int) {
		t.Helper()
		if n, err := plugin.SyncDue(t.Context(), r.DB.System, now); err != nil || n != want {
			t.Errorf("at %s: %d %v", now, n, err)
		}
	}
	due(night, 0) // seen for the first time
	due(night, 0)
	r.DB.Exec(t, "update tenant set status = 'suspended' where id = $1", r.One)
	due(night.Add(2*time.Minute), 0)
	r.DB.Exec(t, "update tenant set status = 'active' where id = $1", r.One)
	due(night.Add(2*time.Minute), 2) // the first, and one of the plugin that needs no credentials
	due(night.Add(2*time.Minute), 0)
	due(night.Add(25*time.Hour), 0) // the previous task has not ended
	// Nobody waits for it, so scans come first, until its user asks for it.
	mine := "select priority from task where type = 'user_plugin_sync' and params ->> 'userId' = '" + users[0].ID.String() + "'"
	if got := r.text(mine); got != "335" {
		t.Errorf("a scheduled sync has the priority %s", got)
	}
	users[0].Do("POST", user+"/"+id+"/sync", nil).Want(409)
	if got, want := r.text(mine), strconv.Itoa(task.Priority(task.UserPluginSync)); got != want {
		t.Errorf("a sync that was asked for has the priority %s, want %s", got, want)
	}
	admin.Do("PATCH", base+"/admin/plugins/"+id, object{"syncCronSchedule": nil}).Want(200)
	r.DB.Exec(t, "update task set status = 'completed', completed_at = now()")
	due(night.Add(49*time.Hour), 1)
	r.DB.Exec(t, "update task set status = 'completed', completed_at = now()")
	r.DB.Exec(t, "update plugin set enabled = false")
	due(night.Add(73*time.Hour), 0)
	var n int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from plugin_schedule").Scan(&n); err != nil || n != 1 {
		t.Error(n, err)
	}
}

// With very many users, tasks are started in batches, once per user, before the schedule advances.
func TestManySyncBySchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.personal(r.User(t, "one", "admin"), object{"syncCronSchedule": "0 0 3 * * *"})
	r.DB.Exec(t, `insert into account (tenant_id, id, username, email, password_hash, role) select $1, gen_random_uuid(), 'many-' || n, n || '@example.org', 'x', 'reader'
		from generate_series(1, 450) n`, r.One)
	r.DB.Exec(t, `insert into user_plugin (tenant_id, id, account_id, plugin_id, config) select a.tenant_id, gen_random_uuid(), a.id, $1, '{"_codex": {"autoSync": true}}'
		from account a where a.username like 'many-%'`, id)
	now := time.Date(2027, 3, 1, 2, 59, 0, 0, time.UTC)
	due := func(want int) {
		t.Helper()
		if n, err := plugin.SyncDue(t.Context(), r.DB.System, now); err != nil || n != want {
			t.Errorf("at %s: %d %v, want %d", now, n, err, want)
		}
	}
	due(0)
	now = now.Add(2 * time.Minute)
	for _, want := range []int{200, 200, 50, 0} {
		due(want)
	}
	if n := r.text("select count(distinct params ->> 'userId')::text from task where type = 'user_plugin_sync'"); n != "450" {
		t.Errorf("tasks of %s users", n)
	}
	if at := r.text("select (next_at at time zone 'utc')::text || coalesce(after_id::text, '') from plugin_schedule"); at != "2027-03-02 03:00:00" {
		t.Errorf("next at %s", at)
	}
	// A new schedule starts over, regardless of the previous one.
	r.DB.Exec(t, "delete from task")
	now = now.Add(24 * time.Hour)
	due(200)
	r.User(t, "one", "admin").Do("PATCH", base+"/admin/plugins/"+id, object{"syncCronSchedule": "0 0 4 * * *"}).Want(200)
	due(0)
	if at := r.text("select (next_at at time zone 'utc')::text || coalesce(after_id::text, '') from plugin_schedule"); at != "2027-03-02 04:00:00" {
		t.Errorf("next at %s", at)
	}
}
