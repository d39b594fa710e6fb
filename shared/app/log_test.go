package app

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// A line of the log names the request, tenant and task of its context, and nothing unknown.
func TestLinesNameTheirTask(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(marked{slog.NewJSONHandler(&out, nil)}).With("plugin", "echo")
	tenant, id := uuid.New(), uuid.New()
	task := db.Task{Tenant: tenant, ID: id, Epoch: 1}
	named := `"plugin":"echo","tenant":"` + tenant.String() + `"`
	line := func(ctx context.Context, want string) {
		t.Helper()
		out.Reset()
		log.WarnContext(ctx, "failed")
		if !strings.HasSuffix(out.String(), want+"}\n") {
			t.Errorf("%s, want %s", out.String(), want)
		}
	}
	ctx := t.Context()
	line(ctx, `"plugin":"echo"`)
	line(db.In(ctx, db.Tenant(tenant)), named)
	line(db.In(ctx, task), named+`,"task":"`+id.String()+`"`)
	line(db.In(ctx, db.Acting{Task: task, Account: uuid.New()}), named+`,"task":"`+id.String()+`"`)

	a := httpapi.New(httpapi.Config{}, nil, nil, httpapi.Identity{Tenant: func(context.Context, string) (httpapi.Tenant, error) {
		return httpapi.Tenant{ID: tenant, Name: "one"}, nil
	}})
	a.Handle(httpapi.Op{Method: "GET", Path: "/api/v1/thing", ID: "getThing", Summary: "Thing", Tag: "Things", Permission: httpapi.Public},
		func(w http.ResponseWriter, r *http.Request) error {
			line(r.Context(), `"plugin":"echo","id":"`+w.Header().Get("X-Request-Id")+`","tenant":"`+tenant.String()+`"`)
			return nil
		})
	w := httptest.NewRecorder()
	a.Router.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/api/v1/thing", nil))
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
