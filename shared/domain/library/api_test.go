package library_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/blob"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

const path = "/api/v1/libraries"

// fixture is a server with the root /books in tenant one, which records what happened.
type fixture struct {
	*testkit.Server
	mu        sync.Mutex
	events    []string
	progress  []events.Progress // of tasks
	added     int               // times that the library said that tasks were added
	bumped    int
	abandoned []uuid.UUID // libraries whose uploads were aborted

	listing  [][]string // keys below the root, by pages
	unlisted []string   // folders below the root
}

// folders is a store in which all folders exist but a few.
type folders struct{ *fixture }

func (folders) Folders(_ context.Context, _, prefix, _ string, _ int) ([]string, []blob.Object, bool, error) {
	if prefix == "missing/" {
		return nil, nil, false, nil
	}
	return []string{prefix + "A/"}, nil, false, nil
}

func (f folders) Named(_ context.Context, _, name string) (folder, object bool, err error) {
	switch name {
	case "forbidden":
		return false, false, blob.ErrDenied
	case "down":
		return false, false, fault.New(fault.Unavailable, "the store is down")
	case "taken": // concurrently
		_, err := f.DB.Owner.Pool().Exec(context.Background(), "delete from library_root where tenant_id = $1", f.One)
		return true, false, err
	case "replaced":
		_, err := f.DB.Owner.Pool().Exec(context.Background(), "update library_root set bucket = 'other' where tenant_id = $1", f.One)
		return true, false, err
	}
	return name != "missing" && name != "file.cbz", name == "file.cbz", nil
}

func (f folders) Walk(_ context.Context, _, prefix, _ string, _ func(folder string) bool) iter.Seq2[blob.Walked, error] {
	return func(yield func(blob.Walked, error) bool) {
		switch prefix {
		case "missing/":
			yield(blob.Walked{}, blob.ErrNotFound)
		case "down/":
			yield(blob.Walked{}, fault.New(fault.Unavailable, "the store is down"))
		case "locked/":
			yield(blob.Walked{}, fmt.Errorf("list s3://bucket/locked/: %w", &blob.StatusError{Status: 500}))
		case "latin/":
			yield(blob.Walked{}, &blob.UnlistedError{Folders: slices.Repeat([]string{"latin/caf\uFFFD/"}, 100), Err: &blob.StatusError{Status: 500}})
		default:
			for _, folder := range f.unlisted {
				if !yield(blob.Walked{Unlisted: prefix + folder}, nil) {
					return
				}
			}
			for _, page := range f.listing {
				var objects []blob.Object
				for _, key := range page {
					objects = append(objects, blob.Object{Key: prefix + key})
				}
				if !yield(blob.Walked{Objects: objects}, nil) {
					return
				}
			}
		}
	}
}

func serve(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{}
	f.Server = testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		library.Routes(a, d, func(_ context.Context, tenant uuid.UUID, all ...events.Event) {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, e := range all {
				f.events = append(f.events, e.Kind)
				if p, ok := e.Data.(events.TaskProgress); ok {
					f.progress = append(f.progress, p.Progress)
				}
			}
		}, folders{f}, func(context.Context, uuid.UUID) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.added++
		}, func(context.Context, uuid.UUID) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.bumped++
		}, func(_ context.Context, library uuid.UUID) (bool, error) {
			f.abandoned = append(f.abandoned, library)
			return true, nil
		})
	})
	for _, tenant := range []uuid.UUID{f.One, f.Two} {
		if _, err := f.DB.Owner.Pool().Exec(context.Background(),
			"insert into library_root (tenant_id, path, bucket, prefix) values ($1, '/books', 'bucket', '')", tenant); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	l := me.Do("POST", path, `{"name":" Comics ","path":"/books/comics/"}`).Want(201).Map()
	want := map[string]any{"name": "Comics", "path": "/books/comics", "description": nil, "isActive": true, "allowedFormats": nil,
		"excludedPatterns": nil, "defaultReadingDirection": "ltr", "bookStrategy": "filename", "numberStrategy": "file_order",
		"seriesStrategy": "series_volume", "bookConfig": nil, "numberConfig": nil, "seriesConfig": nil, "titlePreprocessingRules": nil,
		"autoMatchConditions": nil, "bookCount": 0.0, "seriesCount": 0.0, "lastScannedAt": nil}
	for k, v := range want {
		if got, ok := l[k]; !ok || got != v {
			t.Errorf("%s = %v (present %v), want %v", k, got, ok, v)
		}
	}
	scanning := l["scanningConfig"].(map[string]any)
	for k, v := range map[string]any{"enabled": false, "cronSchedule": nil, "cronTimezone": nil, "scanMode": "normal", "scanOnStart": false, "purgeDeletedOnScan": false} {
		if got, ok := scanning[k]; !ok || got != v {
			t.Errorf("scanningConfig.%s = %v (present %v), want %v", k, got, ok, v)
		}
	}
	if !strings.HasSuffix(l["createdAt"].(string), "Z") {
		t.Errorf("createdAt %v is not UTC", l["createdAt"])
	}
	if got := me.Do("GET", path+"/"+l["id"].(string), nil).Want(200).Map(); got["name"] != "Comics" {
		t.Errorf("read back: %v", got)
	}
	if got := me.Do("GET", path, nil).Want(200).Map(); got["total"] != 1.0 || len(got["data"].([]any)) != 1 {
		t.Errorf("list: %v", got)
	}
	if !slices.Equal(f.events, []string{"library_created"}) || f.added != 0 {
		t.Errorf("events %v, tasks added %d times", f.events, f.added)
	}
	var bucket, prefix string
	var unset int
	if err := f.DB.Owner.Pool().QueryRow(context.Background(), `select bucket, prefix, num_nulls(series_config, book_config, number_config,
		title_preprocessing_rules, auto_match_conditions, allowed_formats) from library`).Scan(&bucket, &prefix, &unset); err != nil ||
		bucket != "bucket" || prefix != "comics/" || unset != 6 {
		t.Errorf("stored at %q, %q with %d of 6 unset, %v", bucket, prefix, unset, err)
	}
}

const everything = `{"name":"All","path":"s3://bucket/manga","description":"d","isActive":true,"allowed_formats":["cbz","EPUB","CBZ","cb7"],
	"excludedPatterns":"*.tmp\nextras/**","default_reading_direction":"rtl","bookStrategy":"metadata_first","numberStrategy":"smart",
	"seriesStrategy":"series_volume","bookConfig":{"a_b":1},"numberConfig":{},"seriesConfig":{"x":[1]},
	"titlePreprocessingRules":[{"pattern":"\\(.*\\)","replacement":"","description":"years"}],
	"autoMatchConditions":{"mode":"any","rules":[{"field":"bookCount","operator":"gt","value":1}]},
	"scanning_config":{"enabled":true,"cron_schedule":"0 3 * * *","cron_timezone":"Europe/Berlin","default_mode":"deep","scan_on_start":true,"purge_deleted_on_scan":true},
	"scanImmediately":true}`

func TestEveryFieldAndPartialUpdate(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	l := me.Do("POST", path, everything).Want(201).Map()
	one := path + "/" + l["id"].(string)
	scanning := l["scanningConfig"].(map[string]any)
	if scanning["cronSchedule"] != "0 3 * * *" || scanning["scanMode"] != "deep" || scanning["enabled"] != true ||
		scanning["scanOnStart"] != true || scanning["purgeDeletedOnScan"] != true || scanning["cronTimezone"] != "Europe/Berlin" {
		t.Errorf("scanningConfig: %v", scanning)
	}
	if got := l["allowedFormats"].([]any); len(got) != 3 || got[0] != "CBZ" || got[1] != "EPUB" || got[2] != "CB7" {
		t.Errorf("allowedFormats: %v", got)
	}
	if l["bookConfig"].(map[string]any)["a_b"] != 1.0 {
		t.Errorf("free JSON was renamed: %v", l["bookConfig"])
	}
	rule := l["titlePreprocessingRules"].([]any)[0].(map[string]any)
	if rule["enabled"] != true || rule["description"] != "years" {
		t.Errorf("rule: %v", rule)
	}
	if got := scans(t, f); got != "normal" || f.added != 1 {
		t.Errorf("scans: %s, tasks added %d times", got, f.added)
	}
	if next := nextScan(t, f, l["id"]); next == nil || !next.After(time.Now()) || next.UTC().Minute() != 0 {
		t.Errorf("next scan %v", next)
	}

	got := me.Do("PATCH", one, `{"description":null,"scanningConfig":{"cronSchedule":"*/10 * * * *"},"seriesConfig":{"x": [1]},"seriesStrategy":"series_volume"}`).Want(200).Map()
	if got["description"] != nil || got["name"] != "All" || got["scanningConfig"].(map[string]any)["scanMode"] != "deep" {
		t.Errorf("partial update: %v", got)
	}
	if next := nextScan(t, f, l["id"]); next == nil || time.Until(*next) > 10*time.Minute {
		t.Errorf("next scan after a change: %v", next)
	}
	f.DB.Exec(t, "update task set status = 'completed', completed_at = now()")
	got = me.Do("PUT", one, `{"name":"Other","path":"/books/x","allowedFormats":null,"titlePreprocessingRules":[],"bookConfig":null,"isActive":false,"scanningConfig":null,"bookStrategy":null}`).Want(200).Map()
	if got["name"] != "Other" || got["path"] != "/books/x" || got["allowedFormats"] != nil || got["titlePreprocessingRules"] != nil ||
		got["bookConfig"] != nil || got["isActive"] != false || got["bookStrategy"] != "filename" || got["numberStrategy"] != "smart" {
		t.Errorf("cleared: %v", got)
	}
	if c := got["scanningConfig"].(map[string]any); c["enabled"] != false || c["cronSchedule"] != nil || c["scanMode"] != "normal" {
		t.Errorf("a schedule set to null: %v", c)
	}
	if next := nextScan(t, f, l["id"]); next != nil {
		t.Errorf("a library without a schedule is due at %v", next)
	}
	if !slices.Equal(f.events, []string{"library_created", "library_updated", "library_updated"}) {
		t.Errorf("events: %v", f.events)
	}
	for range 2 { // reactivated; then already active
		me.Do("PATCH", one, `{"isActive":true}`).Want(200)
	}
	if got := scans(t, f); got != "normal normal" || f.added != 2 {
		t.Errorf("a library that is active again is scanned once: %s, tasks added %d times", got, f.added)
	}
}

// scans returns the modes of all scans.
func scans(t *testing.T, f *fixture) (modes string) {
	t.Helper()
	const all = "select coalesce(string_agg(mode, ' ' order by id), '') from scan"
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), all).Scan(&modes); err != nil {
		t.Fatal(err)
	}
	return modes
}

// An empty change changes nothing, and publishes nothing.
func TestNothingToChange(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	l := me.Do("POST", path, `{"name":"A","path":"/books"}`).Want(201).Map()
	for _, method := range []string{"PATCH", "PUT"} {
		for _, body := range []string{`{}`, `{"scanningConfig":{}}`} {
			if got := me.Do(method, path+"/"+l["id"].(string), body).Want(200).Map(); !reflect.DeepEqual(got, l) {
				t.Errorf("%s %s: %v, was %v", method, body, got, l)
			}
			me.Do(method, path+"/"+uuid.NewString(), body).Want(404)
		}
	}
	if !slices.Equal(f.events, []string{"library_created"}) {
		t.Errorf("events: %v", f.events)
	}
}

// A schedule without its own time zone follows the server's, which is UTC until set.
func TestServerTimeZone(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	expect := func(what string, id any, hour int) {
		t.Helper()
		if next := nextScan(t, f, id); next == nil || next.UTC().Hour() != hour {
			t.Errorf("%s: next scan at %v, want %d o'clock of UTC", what, next, hour)
		}
	}
	create := func(name, zone string) any {
		t.Helper()
		return me.Do("POST", path, `{"name":"`+name+`","path":"/books","scanningConfig":{"enabled":true,"scanMode":"normal","cronSchedule":"0 3 * * *","cronTimezone":`+zone+`}}`).
			Want(201).Map()["id"]
	}
	expect("not set", create("a", "null"), 3)
	f.DB.Set(t, f.One, "scheduler.timezone", "Asia/Tokyo")
	id := create("b", "null")
	expect("set", id, 18)
	expect("its own", create("c", `"UTC"`), 3)
	change := func(config string) { me.Do("PATCH", path+"/"+id.(string), `{"scanningConfig":`+config+`}`).Want(200) }
	change(`{"cronTimezone":"UTC"}`)
	expect("changed to its own", id, 3)
	change(`{"cronTimezone":null}`)
	expect("changed to the server's", id, 18)
	me.Do("PATCH", path+"/"+id.(string), `{"isActive":false}`).Want(200)
	if next := nextScan(t, f, id); next != nil {
		t.Errorf("a library that is not active is due at %v", next)
	}
}

// A library that is created while the time zone changes gets the new one, too.
func TestServerTimeZoneChangesMeanwhile(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	f.DB.Exec(t, `create function change() returns trigger language plpgsql as $$ begin
		  insert into setting (tenant_id, key, value) values (new.tenant_id, 'scheduler.timezone', 'Asia/Tokyo');
		  insert into setting_schedule (tenant_id, key, cron, next_at) values (new.tenant_id, 'scheduler.timezone', 'Asia/Tokyo', now());
		  return new;
		end $$;
		create trigger change before insert on library for each row execute function change()`)
	id := me.Do("POST", path, `{"name":"a","path":"/books","scanningConfig":{"enabled":true,"scanMode":"normal","cronSchedule":"0 3 * * *"}}`).Want(201).Map()["id"]
	if _, err := scan.Due(t.Context(), f.DB.System, time.Now()); err != nil {
		t.Fatal(err)
	}
	if next := nextScan(t, f, id); next == nil || next.UTC().Hour() != 18 {
		t.Errorf("the next scan is at %v, want three o'clock of Tokyo", next)
	}
}

func nextScan(t *testing.T, f *fixture, id any) (next *time.Time) {
	t.Helper()
	if err := f.DB.Owner.Pool().QueryRow(context.Background(), "select next_scan_at from library where id = $1", id).Scan(&next); err != nil {
		t.Fatal(err)
	}
	return next
}

// An empty folder exists; a prefix of a bucket exists as soon as an object is below it.
func TestFoldersWithoutFiles(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	for _, p := range []string{"/books", "/books/empty", "s3://bucket/missing"} {
		me.Do("POST", path, `{"name":"`+p+`","path":"`+p+`"}`).Want(201)
	}
}

// The uploads to a library are aborted before it is deleted.
func TestUploadsToADeletedLibrary(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "admin")
	id := me.Do("POST", path, `{"name":"A","path":"/books/there"}`).Want(201).Map()["id"].(string)
	me.Do("DELETE", path+"/"+id, nil).Want(204)
	if len(f.abandoned) != 1 || f.abandoned[0].String() != id {
		t.Errorf("the uploads to %v are aborted, want those to %s", f.abandoned, id)
	}
}

// A folder name may begin or end with spaces; without them it is another folder.
func TestSpacesInPath(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	for i, p := range []string{"/books/shelf ", "/books/ shelf"} {
		if m := me.Do("POST", path, fmt.Sprintf(`{"name":"%d","path":%q}`, i, p)).Want(201).Map(); m["path"] != p {
			t.Errorf("%q became %q", p, m["path"])
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	for _, c := range []struct{ members, field string }{
		{`"name":""`, "name"},
		{`"name":"   "`, "name"},
		{`"name":"a\u0000b"`, "name"}, {`"name":"a\u202eb"`, "name"},
		{`"name":"` + strings.Repeat("x", 201) + `"`, "name"},
		{`"path":""`, "path"},
		{`"path":"/elsewhere"`, "path"},
		{`"path":"/books/../etc"`, "path"},
		{`"path":"/books/missing"`, "path"},
		{`"path":"/books/forbidden"`, "path"},
		{`"path":"/books/file.cbz"`, "path"},
		{`"path":"s3://other/x"`, "path"},
		{`"seriesStrategy":"nonsense"`, "seriesStrategy"},
		{`"bookStrategy":"x"`, "bookStrategy"},
		{`"seriesStrategy":"custom"`, "seriesConfig.pattern"},
		{`"seriesStrategy":"custom","seriesConfig":{"pattern":"("}`, "seriesConfig.pattern"},
		{`"seriesStrategy":"publisher_hierarchy","seriesConfig":{"skip_depth":-1}`, "seriesConfig.skipDepth"},
		{`"seriesStrategy":"calibre","series_config":{"series_mode":"x"}`, "seriesConfig.seriesMode"},
		{`"bookStrategy":"custom","bookConfig":{"pattern":"x"}`, "bookConfig.pattern"},
		{`"seriesStrategy":"publisher_hierarchy","seriesConfig":{"skipDepht":2}`, "seriesConfig.skipDepht"},
		{`"bookStrategy":"smart","book_config":{"additional_generic_pattern":[]}`, "bookConfig.additional_generic_pattern"},
		{`"numberStrategy":"x"`, "numberStrategy"},
		{`"allowedFormats":["CBX"]`, "allowedFormats"},
		{`"allowedFormats":["CBZ","DOC"]`, "allowedFormats"},
		{`"allowedFormats":"CBZ"`, "allowedFormats"},
		{`"excludedPatterns":"[a"`, "excludedPatterns"},
		{`"defaultReadingDirection":"up"`, "defaultReadingDirection"},
		{`"bookConfig":[1]`, "bookConfig"},
		{`"numberConfig":"x"`, "numberConfig"},
		{`"seriesConfig":{"x":"` + strings.Repeat("x", 70000) + `"}`, "seriesConfig"},
		{`"bookConfig":{"x":"\u0000"}`, "bookConfig"},
		{`"titlePreprocessingRules":[{"pattern":"[` + strings.Repeat("é", 600) + `]"}]`, "titlePreprocessingRules[0].pattern"},
		{`"titlePreprocessingRules":[{"pattern":"a","replacement":"` + strings.Repeat("é", 600) + `"}]`, "titlePreprocessingRules[0].replacement"},
		{`"titlePreprocessingRules":[{"pattern":"("}]`, "titlePreprocessingRules[0].pattern"},
		{`"titlePreprocessingRules":[{"pattern":"(` + strings.Repeat("a?", 400) + `){1000}"}]`, "titlePreprocessingRules[0].pattern"},
		{`"seriesStrategy":"custom","seriesConfig":{"pattern":"(?P<series>(.?.?.?.?.?){1000})"}`, "seriesConfig.pattern"},
		{`"autoMatchConditions":{"rules":[{"field":"a","operator":"matches","value":"(((.?.?.?){10}){10}){10}"}]}`, "autoMatchConditions.rules[0].value"},
		{`"titlePreprocessingRules":[{"replacement":"x"}]`, "titlePreprocessingRules[0]"},
		{`"titlePreprocessingRules":[` + strings.Repeat(`{"pattern":"a"},`, 50) + `{"pattern":"a"}]`, "titlePreprocessingRules"},
		{`"autoMatchConditions":{"rules":[` + strings.Repeat(`{"field":"a","operator":"gt"},`, 50) + `{"field":"a","operator":"gt"}]}`, "autoMatchConditions.rules"},
		{`"autoMatchConditions":{"rules":[{"field":"` + strings.Repeat("a", 201) + `","operator":"gt"}]}`, "autoMatchConditions.rules[0].field"},
		{`"autoMatchConditions":{"rules":[{"field":"a","operator":"matches","value":"[` + strings.Repeat("a", 1001) + `]"}]}`, "autoMatchConditions.rules[0].value"},
		{`"autoMatchConditions":{"mode":"none"}`, "autoMatchConditions.mode"},
		{`"autoMatchConditions":{"rules":[{"field":"a","operator":"matches","value":"("}]}`, "autoMatchConditions.rules[0].value"},
		{`"autoMatchConditions":{"rules":[{"field":"a","operator":"like"}]}`, "autoMatchConditions.rules[0].operator"},
		{`"scanningConfig":{"enabled":true,"cronSchedule":"61 * * * *"}`, "scanningConfig.cronSchedule"},
		{`"scanningConfig":{"enabled":true,"cronSchedule":"0 0 31 2 *"}`, "scanningConfig.cronSchedule"},
		{`"scanning_config":{"enabled":true,"cron_timezone":"Mars/Olympus"}`, "scanningConfig.cronTimezone"},
		{`"scanning_config":{"default_mode":"slow"}`, "scanningConfig.scanMode"},
		{`"scanningConfig":{"enabled":"yes"}`, "scanningConfig.enabled"},
	} {
		name := c.members[1:strings.Index(c.members, `":`)]
		body := `{` + c.members
		if name != "name" {
			body += `,"name":"n"`
		}
		if name != "path" {
			body += `,"path":"/books"`
		}
		m := me.Do("POST", path, body+`}`).Want(400).Map()
		if got := fieldsOf(m); m["error"] != "BadRequest" || !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, c.field) }) {
			t.Errorf("%.80s: details name %v: %v", c.members, got, m["message"])
		}
	}
	me.Do("POST", path, `{"name":"n"}`).Want(400)
	me.Do("POST", path, `{"path":"/books"}`).Want(400)
	me.Do("POST", path, `{"name":"n","path":"/books/down"}`).Want(503)
	if got := me.Do("GET", path, nil).Want(200).Map(); got["total"] != 0.0 {
		t.Errorf("a refused library was stored: %v", got)
	}

	l := me.Do("POST", path, `{"name":"n","path":"/books"}`).Want(201).Map()
	one := path + "/" + l["id"].(string)
	for _, c := range []struct{ body, field string }{
		{`{"seriesStrategy":"flat"}`, "seriesStrategy"},
		{`{"seriesConfig":{"a":1}}`, "seriesConfig"},
		{`{"name":null}`, "name"},
		{`{"path":null}`, "path"},
		{`{"path":"/books/missing"}`, "path"},
		{`{"bookStrategy":"custom"}`, "bookConfig.pattern"},
		{`{"bookStrategy":"smart","bookConfig":{"additionalGenericPattern":[]}}`, "bookConfig.additionalGenericPattern"},
	} {
		if m := me.Do("PUT", one, c.body).Want(400).Map(); !slices.Contains(fieldsOf(m), c.field) {
			t.Errorf("%s: %v", c.body, m)
		}
	}
	me.Do("POST", path, `{"name":"N","path":"/books/b"}`).Want(409)
	me.Do("POST", path, `{"name":"b","path":"/books/b"}`).Want(201)
	if m := me.Do("PATCH", one, `{"name":"B"}`).Want(409).Map(); m["error"] != "Conflict" {
		t.Errorf("taken name: %v", m)
	}
}

func fieldsOf(m map[string]any) (out []string) {
	details, _ := m["details"].([]any)
	for _, d := range details {
		out = append(out, d.(map[string]any)["field"].(string))
	}
	return out
}

func TestWhoMay(t *testing.T) {
	t.Parallel()
	f := serve(t)
	maintainer, admin := f.User(t, "one", "maintainer"), f.User(t, "one", "admin")
	id := maintainer.Do("POST", path, `{"name":"n","path":"/books"}`).Want(201).Map()["id"].(string)
	one := path + "/" + id
	other := f.User(t, "two", "admin")
	for _, r := range []struct {
		method, path, body string
		lacking            *testkit.Client
	}{
		{"GET", path, "", f.Key(t, admin, auth.BooksRead)},
		{"GET", one, "", f.Key(t, admin, auth.BooksRead)},
		{"POST", path, `{"name":"x","path":"/books"}`, f.User(t, "one", "reader")},
		{"PUT", one, `{}`, f.User(t, "one", "reader")},
		{"PATCH", one, `{}`, f.User(t, "one", "reader")},
		{"DELETE", one, "", maintainer},
	} {
		var body any
		if r.body != "" {
			body = r.body
		}
		r.lacking.Do(r.method, r.path, body).Want(403)
		f.Anonymous(t, "one").Do(r.method, r.path, body).Want(401)
		if r.path == one {
			other.Do(r.method, r.path, body).Want(404)
		}
	}
	f.User(t, "one", "reader").Do("POST", path, `{"name":"x","path":"/elsewhere","seriesStrategy":"flat"}`).Want(403)
	if got := other.Do("GET", path, nil).Want(200).Map(); got["total"] != 0.0 {
		t.Errorf("another tenant lists %v", got)
	}
	other.Do("POST", path, `{"name":"n","path":"/books"}`).Want(201) // names are the tenant's own
	admin.Do("DELETE", one, nil).Want(204)
	admin.Do("DELETE", one, nil).Want(404)
	if f.mu.Lock(); f.bumped != 1 {
		t.Errorf("what is remembered of the library was dropped %d times", f.bumped)
	}
	f.mu.Unlock()
}

func TestDeleteTakesEverythingAlong(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	keep := admin.Do("POST", path, `{"name":"keep","path":"/books/k","scanImmediately":true}`).Want(201).Map()["id"].(string)
	gone := admin.Do("POST", path, `{"name":"gone","path":"/books/g","scanImmediately":true}`).Want(201).Map()["id"].(string)
	for _, id := range []string{keep, gone} {
		series := uuid.New()
		for _, sql := range []string{
			`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $3, 's', 's', 's', 's', 's')`,
			`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			 select $1, gen_random_uuid(), $3, $2, 's/' || n, 10, now(), 'cbz', 'b', 'b', 'b' from generate_series(1, 5) n`,
		} {
			if _, err := f.DB.Owner.Pool().Exec(context.Background(), sql, f.One, series, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l := admin.Do("GET", path+"/"+gone, nil).Want(200).Map(); l["bookCount"] != 5.0 || l["seriesCount"] != 1.0 {
		t.Errorf("counts: %v", l)
	}
	if _, err := f.DB.Owner.Pool().Exec(t.Context(), "update scan set files_total = 9, files_processed = 4 where library_id = $1", gone); err != nil {
		t.Fatal(err)
	}
	// One of the scan's children runs, so listeners know it; one is pending.
	if _, err := f.DB.Owner.Pool().Exec(t.Context(), `insert into task (tenant_id, id, type, library_id, parent_id, priority, status, started_at)
		select t.tenant_id, gen_random_uuid(), 'analyze_books', t.library_id, t.id, 495, s.status, s.started_at
		from task t, (values ('running', now()), ('pending', null)) s(status, started_at) where t.library_id = $1`, gone); err != nil {
		t.Fatal(err)
	}
	admin.Do("DELETE", path+"/"+gone, nil).Want(204)
	var books, series, counters, pending, cancelled int
	if err := f.DB.Owner.Pool().QueryRow(context.Background(), `select (select count(*) from book), (select count(*) from series),
		(select count(*) from library_count), (select count(*) from task where status = 'pending'),
		(select count(*) from task where status = 'cancelled' and completed_at is not null)`).Scan(&books, &series, &counters, &pending, &cancelled); err != nil {
		t.Fatal(err)
	}
	if books != 5 || series != 1 || counters != 1 || pending != 1 || cancelled != 3 {
		t.Errorf("left: %d books, %d series, %d counters, %d pending and %d cancelled tasks", books, series, counters, pending, cancelled)
	}
	if want := []string{"library_created", "library_created", "task_progress", "task_progress", "scan_progress", "library_deleted"}; !slices.Equal(f.events, want) {
		t.Errorf("events: %v, want %v", f.events, want)
	}
	if want := []events.Progress{{Message: "Analysing books: cancelled"}, {Current: 4, Total: 9, Message: "Scanning the library: 4 of 9 files, cancelled"}}; !slices.Equal(f.progress, want) {
		t.Errorf("progress of the cancelled tasks: %v, want %v", f.progress, want)
	}
}

// The operator may remove a root, or change what serves it, after it was read and before the library is stored.
func TestRootIsGoneMeanwhile(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	stays := admin.Do("POST", path, `{"name":"stays","path":"/books/stays"}`).Want(201).Map()["id"].(string)
	for _, folder := range []string{"taken", "replaced"} {
		for _, c := range []struct{ method, path, body string }{
			{"POST", path, `{"name":"new","path":"/books/` + folder + `"}`},
			{"POST", path, `{"name":"new","path":"/books/` + folder + `","scanImmediately":true}`},
			{"PATCH", path + "/" + stays, `{"path":"/books/` + folder + `"}`},
		} {
			m := admin.Do(c.method, c.path, c.body).Want(400).Map()
			if m["details"].([]any)[0].(map[string]any)["field"] != "path" || !strings.Contains(m["message"].(string), "no longer in a folder") {
				t.Errorf("%s %s: %v", c.method, c.body, m)
			}
			f.DB.Exec(t, "insert into library_root (tenant_id, path, bucket) values ($1, '/books', 'bucket') on conflict (tenant_id, path) do update set bucket = 'bucket'", f.One)
		}
	}
	var stored string
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), `select string_agg(path || ' in ' || bucket || ' ' || prefix, ', ') || ', ' || (select count(*) from task) || ' tasks'
		from library`).Scan(&stored); err != nil || stored != "/books/stays in bucket stays/, 0 tasks" {
		t.Errorf("%s, %v", stored, err)
	}
	admin.Do("PATCH", path+"/"+stays, `{"path":"/books/other"}`).Want(200)
	admin.Do("PATCH", path+"/"+stays, `{"description":"other"}`).Want(200)
}

// A library whose folder is away keeps its path when it is written back completely.
func TestPathOfAFolderThatIsAway(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	one := path + "/" + admin.Do("POST", path, `{"name":"A","path":"/books/there"}`).Want(201).Map()["id"].(string)
	f.DB.Exec(t, "update library set path = '/books/missing', prefix = 'missing/'")
	for _, method := range []string{"PUT", "PATCH"} {
		if got := admin.Do(method, one, `{"name":"`+method+`","path":"/books/missing"}`).Want(200).Map(); got["name"] != method || got["path"] != "/books/missing" {
			t.Errorf("%s: %v", method, got)
		}
		admin.Do(method, one, `{"path":"/books/forbidden"}`).Want(400)
	}
}

// A running scan stays in its folder, so the library's path cannot change until it has ended.
func TestPathWhileScanning(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	id := admin.Do("POST", path, `{"name":"A","path":"/books/stays","scanImmediately":true}`).Want(201).Map()["id"].(string)
	for _, status := range []string{"pending", "running"} {
		f.DB.Exec(t, "update task set status = $1", status)
		admin.Do("PATCH", path+"/"+id, `{"path":"/books/other"}`).Want(409)
		if got := admin.Do("PUT", path+"/"+id, `{"name":"`+status+`","path":"/books/stays"}`).Want(200).Map(); got["name"] != status {
			t.Errorf("at the same path: %v", got)
		}
	}
	f.DB.Exec(t, "update task set status = 'cancelled', completed_at = now()")
	if got := admin.Do("PATCH", path+"/"+id, `{"path":"/books/other"}`).Want(200).Map(); got["path"] != "/books/other" {
		t.Errorf("after the scan: %v", got["path"])
	}
}

// Reactivating a library and a running scan do not block each other.
func TestActiveAgainWhileScanning(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	id := admin.Do("POST", path, `{"name":"A","path":"/books/stays","isActive":false,"scanImmediately":true}`).Want(201).Map()["id"].(string)
	f.DB.Exec(t, "update task set status = 'running', lease_epoch = 1, lease_until = now() + interval '1 hour'")
	worker, err := f.DB.Owner.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = worker.Rollback(context.Background()) }()
	if _, err := worker.Exec(t.Context(), "select app.hold_task(tenant_id, id, 1) from task"); err != nil {
		t.Fatal(err)
	}
	changed := make(chan int)
	go func() { changed <- admin.Do("PATCH", path+"/"+id, `{"isActive":true}`).Status }()
	f.DB.AwaitLock(t)
	_, wrote := worker.Exec(t.Context(), `insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		select tenant_id, id, id, 's', 's', 's', 's', 's' from library where id = $1`, id)
	if err := errors.Join(wrote, worker.Commit(t.Context())); err != nil {
		t.Error(err)
	}
	if got := <-changed; got != 200 {
		t.Errorf("the change answers %d", got)
	}
}

// A large library is deleted in parts. After an interruption no schedule scans it, and the next call continues.
func TestDeleteInParts(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	ctx := f.In(f.One)
	var ids []uuid.UUID
	for _, name := range []string{"keep", "gone"} {
		id := uuid.MustParse(admin.Do("POST", path, `{"name":"`+name+`","path":"/books/`+name+`","scanImmediately":true}`).Want(201).Map()["id"].(string))
		ids = append(ids, id)
		f.DB.Exec(t, `with s as (
			  insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
			  select $1, gen_random_uuid(), $2, 's' || n, 's', 's', 's', 's' from generate_series(1, 3) n returning id, path)
			insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			select $1, gen_random_uuid(), $2, s.id, s.path || '/' || n, 10, now(), 'cbz', 'b', 'b', 'b' from s, generate_series(1, 5) n`, f.One, id)
	}
	gone := ids[1]
	for _, left := range []float64{11, 7} { // time for one part only; the scan of the first call is another one later
		tasks, found, err := library.Remove(ctx, f.DB.App, gone, 4, -time.Second)
		if !fault.Is(err, fault.Unavailable) || !found || tasks != 1 {
			t.Fatalf("%d tasks, found %v: %v", tasks, found, err)
		}
		if l := admin.Do("GET", path+"/"+gone.String(), nil).Want(200).Map(); l["bookCount"] != left || l["isActive"] != false {
			t.Fatalf("after a part: %v", l)
		}
		f.DB.Exec(t, "insert into task (tenant_id, id, type, library_id) values ($1, gen_random_uuid(), 'scan_library', $2)", f.One, gone)
	}
	if tasks, found, err := library.Remove(ctx, f.DB.App, gone, 4, time.Minute); err != nil || !found || tasks != 1 {
		t.Fatalf("%d tasks, found %v: %v", tasks, found, err)
	}
	admin.Do("GET", path+"/"+gone.String(), nil).Want(404)
	admin.Do("DELETE", path+"/"+gone.String(), nil).Want(404)
	if l := admin.Do("GET", path+"/"+ids[0].String(), nil).Want(200).Map(); l["bookCount"] != 15.0 || l["seriesCount"] != 3.0 || l["isActive"] != true {
		t.Errorf("the other library: %v", l)
	}
	var rows, unfinished int
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), `select (select count(*) from book where library_id = $1) + (select count(*) from series where library_id = $1)
		+ (select count(*) from library_count where library_id = $1), (select count(*) from task where library_id = $1 and status in ('pending', 'running'))`, gone).
		Scan(&rows, &unfinished); err != nil || rows != 0 || unfinished != 0 {
		t.Errorf("left: %d rows and %d unfinished tasks, %v", rows, unfinished, err)
	}
}

// A concurrent removal of a root is waited for: nothing is created or moved below a removed root.
func TestRootIsHeld(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	id := admin.Do("POST", path, `{"name":"l","path":"/books/l"}`).Want(201).Map()["id"].(string)
	for _, c := range [][3]string{{"POST", path, `{"name":"new","path":"/books/new"}`}, {"PUT", path + "/" + id, `{"path":"/books/other"}`}} {
		tx, err := f.DB.Owner.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
		if _, err := tx.Exec(t.Context(), "update library_root set bucket = 'elsewhere' where tenant_id = $1", f.One); err != nil {
			t.Fatal(err)
		}
		answer := make(chan *testkit.Response, 1)
		go func() { answer <- admin.Do(c[0], c[1], c[2]) }()
		f.DB.AwaitLock(t)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		(<-answer).Want(400)
		f.DB.Exec(t, "update library_root set bucket = 'bucket' where tenant_id = $1", f.One)
	}
}

// twice creates two libraries with a series of that many books, with the same files in both.
func twice(t *testing.T, f *fixture, admin *testkit.Client, books int) (ids []string) {
	t.Helper()
	for _, name := range []string{"old", "new"} {
		id := admin.Do("POST", path, `{"name":"`+name+`","path":"/books/`+name+`"}`).Want(201).Map()["id"].(string)
		ids = append(ids, id)
		f.DB.Exec(t, `with s as (
			  insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
			  values ($1, gen_random_uuid(), $2, 's', 's', 's', 's', 's') returning id)
			insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, fingerprint, analyzed)
			select $1, gen_random_uuid(), $2, s.id, 's/' || n || '.cbz', 10, now(), 'cbz', 'b', 'b', 'b', 'f' || n, true from s, generate_series(1, $3) n`, f.One, id, books)
	}
	return ids
}

// Books that have moved to another library are published even if the deletion fails: they stay there.
func TestFailedDeletionTellsWhatHasMoved(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	ids := twice(t, f, admin, 1)
	f.DB.Exec(t, `insert into progress (tenant_id, account_id, book_id, id, current_page, started_at, updated_at)
		select tenant_id, $1, id, gen_random_uuid(), 3, now(), now() from book where library_id = $2`, admin.ID, ids[0])
	f.DB.Exec(t, "create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$")
	f.DB.Exec(t, "create trigger refuse before delete on library for each statement execute function public.refuse()")
	f.events = nil
	admin.Do("DELETE", path+"/"+ids[0], nil).Want(500)
	if !slices.Contains(f.events, "book_updated") {
		t.Errorf("a book has moved, and listeners are told of %v", f.events)
	}
	f.DB.Exec(t, "drop trigger refuse on library")
	admin.Do("DELETE", path+"/"+ids[0], nil).Want(204)
}

// What people said about a series, or chose, moves with its books to the library that has the files now, even if nobody
// has read them.
func TestDeletionLeavesWhatIsChosen(t *testing.T) {
	t.Parallel()
	for what, sql := range map[string]string{
		"rating": "insert into series_rating (tenant_id, account_id, series_id, id, rating) select $1, $2, id, gen_random_uuid(), 90 from series where library_id = $3",
		"lock":   "update series set locks = '{summary}' where tenant_id = $1 and $2::uuid is not null and library_id = $3",
		"queue":  "insert into wanted (tenant_id, account_id, id, book_id, place) select $1, $2, gen_random_uuid(), id, 1 from book where library_id = $3 and key = 's/2.cbz'",
	} {
		f := serve(t)
		admin := f.User(t, "one", "admin")
		ids := twice(t, f, admin, 2)
		f.DB.Exec(t, sql, f.One, admin.ID, ids[0])
		admin.Do("DELETE", path+"/"+ids[0], nil).Want(204)
		var books, kept int
		if err := f.DB.Owner.Pool().QueryRow(t.Context(), `select count(*), count(*) filter (where s.locks <> '{}'
			  or exists (select from series_rating r where r.series_id = s.id) or exists (select from wanted w where w.book_id = b.id))
			from book b join series s on s.id = b.series_id where b.library_id = $1 and b.deleted_at is null`, ids[1]).Scan(&books, &kept); err != nil || books != 2 || kept == 0 {
			t.Errorf("%s: %d books, %d of them as they were, %v", what, books, kept, err)
		}
	}
}

// Data of a series, some of whose books are deleted with the library, moves to the series where the other books have
// gone; events are published.
func TestDeletionLeavesWhatIsOfAPartOfASeries(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	ids := twice(t, f, admin, 3)
	f.DB.Exec(t, "delete from book where library_id = $1 and key = 's/3.cbz'", ids[1])
	f.DB.Exec(t, "insert into series_rating (tenant_id, account_id, series_id, id, rating) select $1, $2, id, gen_random_uuid(), 90 from series where library_id = $3", f.One, admin.ID, ids[0])
	f.DB.Exec(t, "update series set summary = 'mine' where library_id = $1", ids[0])
	f.events = nil
	admin.Do("DELETE", path+"/"+ids[0], nil).Want(204)
	var got string
	row := f.DB.Owner.Pool().QueryRow(t.Context(), `select concat_ws(', ', s.summary, (select rating from series_rating r where r.series_id = s.id), s.book_count) from series s where s.tenant_id = $1`, f.One)
	if err := row.Scan(&got); err != nil || got != "mine, 90, 2" {
		t.Errorf("the series that is left has %q, %v", got, err)
	}
	if !slices.Contains(f.events, "series_updated") {
		t.Errorf("listeners are told of %v", f.events)
	}
}

// A file in two libraries still exists when one is deleted, whichever was scanned last: progress, and data of the
// series, continue in the other one, with the same file.
func TestDeletionOfAnotherLibraryOverTheSameFolder(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	other := f.User(t, "one", "reader")
	ids := twice(t, f, admin, 3)
	f.DB.Exec(t, "update library set bucket = o.bucket, prefix = o.prefix from library o where o.id = $1 and library.id = $2", ids[0], ids[1])
	f.DB.Exec(t, "update library set looked_at = now() where id = $1", ids[0])
	f.DB.Exec(t, "update series set created_at = now() - interval '1 day' where tenant_id = $1", f.One)
	f.DB.Exec(t, "update series set created_at = created_at - interval '1 day', summary = 'mine' where library_id = $1", ids[1])
	f.DB.Exec(t, "update series set summary = 'of the file', publisher = 'P' where library_id = $1", ids[0])
	f.DB.Exec(t, "update book set fingerprint = 'same', created_at = now() - interval '1 day' where tenant_id = $1", f.One)
	for account, library := range map[uuid.UUID]string{admin.ID: ids[0], other.ID: ids[1]} {
		f.DB.Exec(t, `insert into progress (tenant_id, account_id, book_id, id, current_page) select tenant_id, $1, id, gen_random_uuid(), 2 from book
			where library_id = $2 and key = case $2 when $3 then 's/2.cbz' else 's/3.cbz' end`, account, library, ids[0])
	}
	f.DB.Exec(t, "insert into series_rating (tenant_id, account_id, series_id, id, rating) select $1, $2, id, gen_random_uuid(), 90 from series where library_id = $3", f.One, admin.ID, ids[0])
	admin.Do("DELETE", path+"/"+ids[0], nil).Want(204)
	var got string
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), `select string_agg(b.key || ' ' || coalesce((select string_agg(case p.account_id when $2 then 'admin' else 'reader' end, ',') from progress p where p.book_id = b.id), '')
		  || ' ' || (select count(*) from series_rating r where r.series_id = b.series_id), ', ' order by b.key)
		from book b where b.tenant_id = $1 and b.deleted_at is null`, f.One, admin.ID).Scan(&got); err != nil || got != "s/1.cbz  1, s/2.cbz admin 1, s/3.cbz reader 1" {
		t.Errorf("left: %q, %v", got, err)
	}
	row := f.DB.Owner.Pool().QueryRow(t.Context(), "select summary || ', ' || publisher from series where tenant_id = $1", f.One)
	if err := row.Scan(&got); err != nil || got != "mine, P" { // the older one has its own value, and gets what it lacked
		t.Errorf("the series that is left says %q, %v", got, err)
	}
}

// A writer in a library that is being deleted locks scan, library and counts in this order, and then books: the
// deletion waits for each, and holds no lock that the writer still needs.
func TestDeletionWaitsForWriters(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	locks := []string{
		"select from scan where library_id = $1 for update",
		"select from library where id = $1 for key share",
		"select from library_count where library_id = $1 for update",
		"update book set title = 'c' where library_id = $1",
	}
	// From the first lock up to the last one held.
	for _, c := range [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}} {
		first, held := c[0], c[1]
		id := uuid.MustParse(admin.Do("POST", path, `{"name":"l`+fmt.Sprint(c)+`","path":"/books/keep"}`).Want(201).Map()["id"].(string))
		f.DB.Exec(t, "insert into task (tenant_id, id, type, library_id, status) values ($1, $2, 'scan_library', $2, 'completed')", f.One, id)
		f.DB.Exec(t, "insert into scan (tenant_id, id, library_id, mode) values ($1, $2, $2, 'normal')", f.One, id)
		f.DB.Exec(t, `with s as (
			  insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
			  values ($1, gen_random_uuid(), $2, 's', 's', 's', 's', 's') returning id)
			insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title)
			select $1, gen_random_uuid(), $2, s.id, 's/1', 10, now(), 'cbz', 'b', 'b', 'b' from s`, f.One, id)
		writer, err := f.DB.Owner.Pool().Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// After a failure; otherwise it is closed.
		t.Cleanup(func() { _ = writer.Rollback(context.WithoutCancel(t.Context())) })
		lock := func(some []string) {
			for _, sql := range some {
				if _, err := writer.Exec(t.Context(), sql, id); err != nil {
					t.Errorf("a writer with the locks %v, at %s: %v", c, sql, err)
				}
			}
		}
		lock(locks[first:held])
		done := make(chan error, 1)
		go func() {
			_, _, err := library.Remove(f.In(f.One), f.DB.App, id, 100, time.Minute)
			done <- err
		}()
		testkit.Eventually(t, time.Minute, func() bool {
			var waits bool
			if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))",
				int32(writer.Conn().PgConn().PID())).Scan(&waits); err != nil {
				t.Fatal(err)
			}
			return waits
		})
		lock(locks[held:])
		if err := errors.Join(writer.Commit(t.Context()), <-done); err != nil {
			t.Errorf("beside a writer with the locks %v: %v", c, err)
		}
		admin.Do("GET", path+"/"+id.String(), nil).Want(404)
	}
}

// A body of two megabytes used to be answered with sixty.
func TestManyFaultsAreToldInShort(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	for values, details := range map[int]int{2_000: 100, 60_000: 1} {
		body := `{"name":"n","path":"/books","titlePreprocessingRules":[` + strings.Repeat("{},", values) + `{}]}`
		if got := me.Do("POST", path, body).Want(400).Map()["details"].([]any); len(got) != details {
			t.Errorf("%d values: %d details", values, len(got))
		}
	}
}
