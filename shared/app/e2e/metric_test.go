package e2e_test

import (
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// The api reports what a worker has done by itself: a scan with its files, and the books that were analysed.
func TestFiguresOfTasks(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	for _, name := range []string{"S/a 1.cbz", "S/a 2.cbz", "T/b 1.cbz"} {
		testkit.WriteFile(t, s.folder, name, testkit.Comic(t, len(name), 2, "<Title>"+name+"</Title>"))
	}
	library := s.library(admin, "Books", "")
	s.scan(admin, library)
	s.scan(admin, library)
	byType := func() map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, x := range admin.Do("GET", "/api/v1/metrics/tasks", nil).Want(200).Map()["byType"].([]any) {
			m := x.(map[string]any)
			out[m["taskType"].(string)] = m
		}
		return out
	}
	got := byType()
	if m := got["scan_library"]; m["executed"] != 2.0 || m["succeeded"] != 2.0 || m["itemsProcessed"] != 6.0 || m["avgQueueWaitMs"] == nil || m["p95DurationMs"] == nil {
		t.Errorf("scans: %v", m)
	}
	if m := got["analyze_books"]; m["failed"] != 0.0 || m["itemsProcessed"] != 3.0 {
		t.Errorf("analyses: %v", m)
	}
	points := admin.Do("GET", "/api/v1/metrics/tasks/history?granularity=day&taskType=scan_library", nil).Want(200).Map()["points"].([]any)
	count := 0.0
	for _, p := range points { // two points, at midnight
		count += p.(map[string]any)["count"].(float64)
	}
	if count != 2 {
		t.Errorf("history: %v", points)
	}
	admin.Do("DELETE", "/api/v1/tasks/nuke", nil).Want(200)
	if m := byType()["scan_library"]; m["executed"] != 2.0 {
		t.Errorf("after the tasks were deleted: %v", m)
	}
	admin.Do("GET", "/api/v1/libraries/"+library.String()+"/scan-status", nil).Want(404)
	if st := s.scan(admin, library); st.Status != "completed" { // without any earlier task
		t.Errorf("a scan afterwards: %+v", st)
	}
	if n := len(s.books(admin)); n != 3 {
		t.Errorf("%d books", n)
	}
}
