package infra_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The CDN's path patterns route every operation to its function.
func TestPathsReachTheirFunction(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Content map[string]any
			}
		}
	}
	if err := json.Unmarshal(raw, &description); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for path, methods := range description.Paths {
		for method, operation := range methods {
			want := "api"
			for kind := range operation.Responses["200"].Content {
				switch {
				// A file of any kind.
				case strings.HasPrefix(kind, "image/"), kind == "application/octet-stream", kind == "application/*", kind == "application/zip", kind == "text/csv":
					want = "media"
				case kind == "text/event-stream":
					want = "relay"
				}
			}
			seen[want]++
			example := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(path, "0190aaaa-0000-7000-8000-000000000000")
			if strings.HasSuffix(path, "/pages/address") {
				want = "media" // JSON, but signed with the key that only media has
			}
			if path == "/api/v1/admin/cleanup-orphans/stats" {
				want = "media" // JSON, but counted in the bucket that api may not list
			}
			if strings.Contains(path, "/{id}/manifest") || strings.HasSuffix(path, "/{id}/positions") {
				want = "media" // JSON, but read from the book's file
			}
			if strings.HasSuffix(path, "/covers/{coverId}/image") {
				want = "api" // it is stored in the database as uploaded
			}
			for _, app := range []bool{true, false} {
				if got := origin(t, example, app); got != want {
					t.Errorf("%s %s goes to %s, but %s answers it: correct CacheBehaviors in infra/edge.yaml", method, path, got, want)
				}
			}
		}
	}
	if seen["api"] < 30 || seen["media"] < 4 {
		t.Fatalf("only %v operations found: the search is broken", seen)
	}
	for _, path := range []string{"/", "/series/1", "/login/oidc/complete", "/assets/api.js"} {
		if with, without := origin(t, path, true), origin(t, path, false); with != "web" || without != "api" {
			t.Errorf("%s, which is a web application's, goes to %s, and without one to %s", path, with, without)
		}
	}
	if got := origin(t, "/verify-email", true); got != "api" { // links of mail; no operation
		t.Errorf("the page that confirms an address goes to %s", got)
	}
	// Paths without a pattern that do not belong to the web application.
	code := read(t, "infra/edge.yaml").get("Resources", "ForWebApp", "Properties", "FunctionCode").text()
	literal := regexp.MustCompile(`if \((/\^.+?/)\.test\(r\.uri\)\) \{ // Longbox' own`).FindStringSubmatch(code)
	if literal == nil {
		t.Fatal("ForWebApp of infra/edge.yaml refuses no path")
	}
	ours := regexp.MustCompile(strings.ReplaceAll(strings.Trim(literal[1], "/"), `\/`, "/"))
	for path, want := range map[string]bool{
		"/api": true, "/health/": true, "/health/x": true, "/koreader": true, "/verify-email/": true, "/komga/api": true,
		"/": false, "/apis": false, "/series/api/1": false, "/healthy": false, "/series/1": false,
	} {
		if ours.MatchString(path) != want {
			t.Errorf("%s is ours: %t", path, !want)
		}
	}
	for _, stream := range []string{"events", "tasks", "scans"} {
		if got := origin(t, "/api/v1/"+stream+"/stream", true); got != "relay" {
			t.Errorf("the stream of %s goes to %s", stream, got)
		}
	}
}

// origin returns the distribution's origin for a path, with or without a web application.
func origin(t *testing.T, path string, app bool) string {
	t.Helper()
	for _, d := range read(t, "infra/edge.yaml").resources("AWS::CloudFront::Distribution") {
		config := d.get("DistributionConfig")
		for _, b := range config.get("CacheBehaviors").list() {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(b.get("PathPattern").text()), `\*`, ".*")
			if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
				return b.get("TargetOriginId").text()
			}
		}
		return config.get("DefaultCacheBehavior").chosen(app).get("TargetOriginId").text()
	}
	t.Fatal("no distribution in infra/edge.yaml")
	return ""
}
