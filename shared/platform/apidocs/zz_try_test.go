package apidocs_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/health"
	"github.com/longbox/longbox/shared/domain/preference"
	"github.com/longbox/longbox/shared/domain/setting"
	"github.com/longbox/longbox/shared/domain/task"
	"github.com/longbox/longbox/shared/platform/apidocs"
)

func TestZZ(t *testing.T) {
	if os.Getenv("TRY") == "" {
		t.Skip()
	}
	a := newAPI()
	setting.Routes(a, nil, nil)
	filesystem.Routes(a, nil, nil)
	health.Routes(a, nil)
	task.Routes(a, nil, nil)
	preference.Routes(a, nil)
	j, err := apidocs.JSON(a)
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/docsrv/openapi.json", j, 0o644)
	y, _ := apidocs.YAML(a)
	os.WriteFile("/tmp/docsrv/openapi.yaml", y, 0o644)
	if os.Getenv("TRY") == "serve" {
		apidocs.Routes(a, apidocs.Config{Enabled: true, Path: "/docs"})
		http.ListenAndServe("127.0.0.1:18099", a.Router)
	}
}
