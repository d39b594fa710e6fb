package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/events"
	"github.com/longbox/longbox/shared/testkit"
)

// Streams follow the permissions. One whose API key is deleted ends. One whose user no longer sees all series goes on,
// without what only those learn who do.
func TestStreamsFollowPermissions(t *testing.T) {
	t.Parallel()
	s := newSystem(t, links{})
	base, admin, reader := startRelay(t, s), s.as("admin"), s.as("reader")
	var key struct {
		ID  uuid.UUID
		Key string
	}
	admin.Do("POST", "/api/v1/api-keys", map[string]any{"name": "relay"}).Want(201).JSON(&key)
	byKey := *admin
	byKey.Header = http.Header{"X-Api-Key": {key.Key}}
	keyed, stream := s.stream(t, base, &byKey), s.stream(t, base, reader)
	publisher := events.New(testkit.Redis(t), events.Config{Timeout: obeyed}, nil)
	// learns tells whether the reader hears of the release, which is announced before an event for everybody.
	learns := func() (release bool) {
		t.Helper()
		if err := publisher.Publish(t.Context(), s.One, events.ReleaseAnnounced(events.Release{}), events.LibraryUpdated(uuid.New())); err != nil {
			t.Fatal(err)
		}
		for late := time.After(obeyed); ; {
			select {
			case line, open := <-stream:
				switch {
				case !open:
					t.Fatal("the stream has ended")
				case line == "event: release_announced":
					release = true
				case line == "event: library_updated":
					return release
				}
			case <-late:
				t.Fatal("the stream says nothing")
			}
		}
	}
	if !learns() {
		t.Fatal("who sees all series hears of no release")
	}
	var tag struct{ ID uuid.UUID }
	admin.Do("POST", "/api/v1/admin/sharing-tags", map[string]any{"name": "for some"}).Want(201).JSON(&tag)
	admin.Do("PUT", "/api/v1/users/"+reader.ID.String()+"/sharing-tags", map[string]any{"sharingTagId": tag.ID, "accessMode": "deny"}).Want(200)
	testkit.Eventually(t, obeyed, func() bool { return !learns() })
	admin.Do("DELETE", "/api/v1/api-keys/"+key.ID.String(), nil).Want(204)
	if _, open := until(keyed, ""); open {
		t.Error("the stream of a deleted API key is still open")
	}
}
