package schema_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/migrations"
	"github.com/longbox/longbox/shared/platform/schema"
	"github.com/longbox/longbox/shared/testkit"
)

// When several programs start at once, one migrates and the others wait. A concurrent index build waits for all running
// statements, so the waiting ones must not run one. Their sessions outlive the timeout of a database that may pause.
func TestSeveralMigrateAtOnce(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("m%d", os.Getpid())
	super, err := pgx.Connect(t.Context(), testkit.Superuser(t))
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := super.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		exec("drop database if exists " + name + " with (force)")
		_ = super.Close(context.Background()) // the test is over
	})
	exec("create database " + name + " owner longbox_owner template template0 encoding 'UTF8' locale 'C.UTF-8'")
	exec("alter database " + name + " set idle_session_timeout = '400ms'")
	u, err := url.Parse(testkit.Superuser(t))
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword("longbox_owner", "longbox"), "/"+name
	files, err := migrations.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // only a lock for ever takes so long
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	applied := 0
	for range 4 {
		all.Go(func() {
			n, _, err := schema.Migrate(ctx, u.String())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied += n
		})
	}
	all.Wait()
	if applied != len(files) {
		t.Errorf("%d steps were applied of %d", applied, len(files))
	}
}
