package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/testkit"
)

// CloudFormation always gets a response: it waits for it.
func TestCloudFormationIsAnswered(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	for _, c := range []struct{ request, database, status, has string }{
		{"Create", d.OwnerURL, "SUCCESS", `"PhysicalResourceId":"schema"`},
		{"Update", d.OwnerURL, "SUCCESS", `"SchemaVersion"`},
		{"Update", "postgres://longbox_owner:x@127.0.0.1:1/longbox?connect_timeout=1", "FAILED", `"Reason":"DATABASE_OWNER_URL: `},
		{"Delete", "postgres://longbox_owner:x@127.0.0.1:1/longbox", "SUCCESS", `"PhysicalResourceId":"schema"`},
	} {
		t.Run(c.request+" "+c.status, func(t *testing.T) {
			t.Parallel()
			var answer string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || r.Method != http.MethodPut {
					t.Errorf("%s: %v", r.Method, err)
				}
				answer = string(body)
			}))
			defer s.Close()
			payload, err := json.Marshal(map[string]any{"RequestType": c.request, "ResponseURL": s.URL, "RequestId": "r", "StackId": "s",
				"LogicalResourceId": "Schema", "PhysicalResourceId": "schema", "ResourceProperties": map[string]any{"Version": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := invoked(t.Context(), config{OwnerURL: c.database}, payload); err != nil {
				t.Error(err)
			}
			if !strings.Contains(answer, `"Status":"`+c.status+`"`) || !strings.Contains(answer, c.has) || strings.Contains(answer, ":x@") {
				t.Errorf("answered %s", answer)
			}
		})
	}
}

// A migration that does not finish is reported before the invocation is cut off.
func TestCloudFormationHearsOfALongMigration(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	other, err := d.Owner.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Release()
	if _, err := other.Exec(t.Context(), "select pg_advisory_lock(726601)"); err != nil { // as another migration holds it
		t.Fatal(err)
	}
	answer := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer <- string(body)
	}))
	defer s.Close()
	payload, err := json.Marshal(map[string]any{"RequestType": "Update", "ResponseURL": s.URL, "RequestId": "r", "StackId": "s",
		"LogicalResourceId": "Schema", "PhysicalResourceId": "schema", "ResourceProperties": map[string]any{"Version": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), margin+time.Second)
	defer cancel()
	if _, err := invoked(ctx, config{OwnerURL: d.OwnerURL}, payload); err != nil {
		t.Error(err)
	}
	if got := <-answer; ctx.Err() != nil || !strings.Contains(got, `"Status":"FAILED"`) || !strings.Contains(got, `"Reason":"migrate: lock: `) {
		t.Errorf("answered %s (%v)", got, ctx.Err())
	}
}
