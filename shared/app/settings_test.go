package app_test

import (
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"

	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/app/operator"
	"github.com/longbox/longbox/shared/app/scheduler"
	"github.com/longbox/longbox/shared/app/worker"
)

// The programs that read books end where one of their limits is out of bounds, with a line that names it.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ARCHIVE_MAX_RATIO", "XML_MAX_DEPTH", "EPUB_MAX_TEXT", "PDF_MAX_READS", "PDF_PARALLEL", "RENDER_MAX_WAITING", "EVENT_PAUSE"} {
		refused(t, name, worker.New)
		if name != "XML_MAX_DEPTH" && name != "EPUB_MAX_TEXT" { // media reads no publications
			refused(t, name, media.New)
		}
	}
}

// The address of a database that cannot be one is named by the setting that it was given in.
func TestDatabaseAddressIsChecked(t *testing.T) {
	t.Parallel()
	refused(t, "DATABASE_URL", media.New)
	refused(t, "DATABASE_SYSTEM_URL", worker.New)
	refused(t, "DATABASE_SYSTEM_URL", scheduler.New)
	refused(t, "DATABASE_SYSTEM_URL", operator.New)
}

func refused[C, P any](t *testing.T, name string, program func(C) (P, *app.Base, error)) {
	t.Helper()
	c, err := env.ParseAsWithOptions[C](env.Options{Environment: map[string]string{"DATABASE_URL": "postgres:///longbox",
		"DATABASE_SYSTEM_URL": "postgres:///longbox", "AUTH_SIGNING_KEY": strings.Repeat("A", 43) + "=", name: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	_, base, err := program(c)
	if err == nil {
		base.Close()
	}
	if err == nil || !strings.HasPrefix(err.Error(), name+" ") && !strings.HasPrefix(err.Error(), name+":") || strings.Count(err.Error(), "DATABASE_") > 1 {
		t.Errorf("%s=0: %T ends with %v, want an error that names the setting", name, c, err)
	}
}
