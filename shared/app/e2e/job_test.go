package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

// job adds a new library and a job of it.
func (m *matrix) job(c *testkit.Client) string {
	library, id := m.library(c), uuid.New()
	m.exec(`insert into library_job (tenant_id, id, library_id, name, enabled, cron_schedule, config)
		values ($1, $2, $3, 'Geheim', true, '0 3 * * *', jsonb_build_object('type', 'metadata_refresh', 'provider', 'plugin:' || $4::text, 'maxConcurrency', 4))`, m.One, id, library, m.asker)
	return library + "|" + id.String()
}

func (m *matrix) newJob(*testkit.Client) any {
	// The job's name is its id.
	return object{"cronSchedule": "0 3 * * *", "config": object{"type": "metadata_refresh", "provider": m.asker}}
}

// From adding a job to what its task has written, and the events about it.
func TestJobFillsLibrary(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	for _, name := range []string{"Saga/Saga 1.cbz", "Saga/Saga 2.cbz", "Monster/Monster 1.cbz"} {
		testkit.WriteFile(t, s.folder, name, testkit.Comic(t, len(name), 2, ""))
	}
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	command, args, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	admin.Do("POST", "/api/v1/admin/plugins", object{"name": "test", "displayName": "Test", "command": command, "args": args, "enabled": true, "permissions": []string{"metadata:write:*"}}).Want(201)
	at := "/api/v1/libraries/" + library.String() + "/jobs"
	at += "/" + admin.Do("POST", at, object{"cronSchedule": "0 3 * * *", "config": object{"type": "metadata_refresh", "provider": "plugin:test", "scope": "series_and_books",
		"fieldGroups": []string{"publication"}, "bookFieldGroups": []string{"titles"}}}).Want(201).Map()["id"].(string)
	tried := admin.Do("POST", at+"/dry-run", nil).Want(200).Map()
	if tried["totalEligible"] != 5.0 || len(tried["sample"].([]any)) != 5 || tried["planFailure"] != nil {
		t.Errorf("%v", tried)
	}
	stop := s.work()
	defer stop()
	id := admin.Do("POST", at+"/run-now", nil).Want(200).Map()["taskId"].(string)
	var job object
	testkit.Eventually(t, 30*time.Second, func() bool {
		job = admin.Do("GET", at, nil).Want(200).Map()
		return job["lastRunStatus"] == "completed"
	})
	if !strings.HasPrefix(job["lastRunMessage"].(string), "5 of 5 updated") {
		t.Errorf("%v", job)
	}
	var task object
	testkit.Eventually(t, 30*time.Second, func() bool {
		task = admin.Do("GET", "/api/v1/tasks/"+id, nil).Want(200).Map()
		return task["status"] == "completed"
	})
	if p := task["progress"].(object); p["current"] != 5.0 || p["total"] != 5.0 || p["message"] != "Refreshing the library's metadata from a plugin: 5 of 5, completed" {
		t.Errorf("%v", task)
	}
	for _, x := range admin.Do("GET", "/api/v1/series", nil).Want(200).Map()["data"].([]any) {
		if x.(object)["year"] != 1999.0 || x.(object)["title"] == "The Given Title" {
			t.Errorf("%v", x)
		}
	}
	for _, b := range s.books(admin) {
		if m := admin.Do("GET", "/api/v1/books/"+b.ID.String(), nil).Want(200).Map(); m["title"] != "The Given Book" {
			t.Errorf("%v", m["title"])
		}
	}
}
