package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/fault"
)

// A 503 always says when to retry, even if the error does not.
func TestUnavailableSaysWhen(t *testing.T) {
	t.Parallel()
	a := things(Config{})
	soon := fault.New(fault.Unavailable, "later")
	later := &fault.Error{Code: fault.Unavailable, Message: "later", RetryAfter: 30 * time.Second}
	for path, err := range map[string]error{"soon": soon, "later": later} {
		Register(a, Op{Method: "GET", Path: "/api/v1/json/" + path, ID: "getJSON" + path, Summary: "JSON", Tag: "Things", Permission: Public},
			func(context.Context, *struct{}) (*None, error) { return nil, err })
		a.Handle(Op{Method: "GET", Path: "/api/v1/plain/" + path, ID: "getPlain" + path, Summary: "Plain", Tag: "Things", Permission: Public},
			func(http.ResponseWriter, *http.Request) error { return errors.Join(err) })
	}
	for path, want := range map[string]string{"json/soon": "2", "plain/soon": "2", "json/later": "30", "plain/later": "30"} {
		w := ask(a, "GET", "/api/v1/"+path)
		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != 503 || w.Header().Get("Retry-After") != want || p.RetryAfter == nil {
			t.Errorf("%s: %d, Retry-After %q, %s", path, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
	if soon.RetryAfter != 0 {
		t.Error("an error that others may share was changed")
	}
}
