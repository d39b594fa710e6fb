package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

func (m *matrix) trackedSeries(c *testkit.Client) string {
	m.exec("insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true) on conflict do nothing", m.One, m.book.SeriesID)
	return m.theSeries(c)
}

func (m *matrix) anAlias(*testkit.Client) any {
	m.n++
	return object{"alias": fmt.Sprint("Geheim ", m.n)}
}

func (m *matrix) aliased(c *testkit.Client) string {
	id := uuid.New()
	m.exec("insert into series_alias (tenant_id, id, series_id, alias, normalized, source) values ($1, $2::uuid, $3, 'Geheim', $2::text, 'manual')", m.One, id, m.book.SeriesID)
	return m.theSeries(c) + "|" + id.String()
}

// releaseSource adds a release source of one of tenant one's plugins.
func (m *matrix) releaseSource(*testkit.Client) string {
	id := uuid.New()
	m.exec(`insert into release_source (tenant_id, id, plugin_id, name, display_name, kind) values ($1, $2::uuid, $3, $2::text, 'Geheim', 'api-feed')`, m.One, id, m.asker)
	return id.String()
}

// release adds a release for the matrix's series.
func (m *matrix) release(c *testkit.Client) string {
	id := uuid.New()
	m.exec(`insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at, language)
		values ($1, $2::uuid, $3, $4, $2::text, 'https://example.org/Geheim 1.cbz', 1, 'announced', now(), 'en')`, m.One, id, m.releaseSource(c), m.book.SeriesID)
	return id.String()
}

// releases names an existing release.
func (m *matrix) releases(*testkit.Client) any {
	var id uuid.UUID
	if err := m.DB.Owner.Pool().QueryRow(context.Background(), "select coalesce((select id from release limit 1), gen_random_uuid())").Scan(&id); err != nil {
		m.t.Fatal(err)
	}
	return object{"action": "dismiss", "ids": []uuid.UUID{id}}
}

// From a plugin that is enabled and names its source, to the releases that its poll found for a tracked series.
func TestReleasesAreAnnounced(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	admin := s.as("admin")
	testkit.WriteFile(t, s.folder, "Bleak House/Bleak House 1.cbz", testkit.Comic(t, 1, 2, "<Volume>1</Volume>"))
	s.scan(admin, s.library(admin, "Books", ""))
	series := s.books(admin)["Bleak House/Bleak House 1.cbz"].SeriesID.String()
	command, _, err := pluginkit.Command()
	if err != nil {
		t.Fatal(err)
	}
	_, args, err := pluginkit.Command("releases")
	if err != nil {
		t.Fatal(err)
	}
	candidate := func(external string, volume int) object {
		return object{"seriesMatch": object{"seriesId": series, "confidence": 1}, "externalReleaseId": external, "language": "en", "payloadUrl": "https://example.org/" + external,
			"volumes": []object{{"start": volume, "end": volume}}}
	}
	admin.Do("POST", "/api/v1/admin/plugins", object{"name": "watcher", "displayName": "Watcher", "command": command, "args": args, "enabled": true, "config": object{
		"early":  object{"sources": []object{{"sourceKey": "feed", "displayName": "Feed", "kind": "rss-series"}}},
		"calls":  []object{{"method": "releases/record", "params": object{"sourceId": "$source", "candidate": candidate("a", 100)}}},
		"result": object{"candidates": []object{candidate("b", 101)}}}}).Want(201)
	stop := s.work()
	defer stop()
	admin.Do("POST", "/api/v1/series/bulk/track-for-releases", object{"seriesIds": []string{series}}).Want(200)
	testkit.Eventually(t, 30*time.Second, func() bool {
		return admin.Do("GET", "/api/v1/series/"+series+"/tracking", nil).Want(200).Map()["tracked"] == true
	})
	sources := admin.Do("GET", "/api/v1/release-sources", nil).Want(200).Map()["data"].([]any)
	if len(sources) != 1 || sources[0].(object)["sourceKey"] != "feed" {
		t.Fatalf("%v", sources)
	}
	admin.Do("POST", "/api/v1/release-sources/"+sources[0].(object)["id"].(string)+"/poll-now", nil).Want(200)
	testkit.Eventually(t, 30*time.Second, func() bool { return admin.Do("GET", "/api/v1/releases", nil).Want(200).Map()["total"] == 2.0 })
}
