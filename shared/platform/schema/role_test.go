package schema_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/schema"
	"github.com/longbox/longbox/shared/testkit"
)

// An administrator without superuser rights, as hosted servers have, can create roles and database. The schema can be
// applied, and a second run sets new passwords.
func TestPrepare(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	super, err := pgx.Connect(ctx, testkit.Superuser(t))
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(os.Getpid())
	exec := func(sql string) {
		t.Helper()
		if _, err := super.Exec(context.Background(), sql); err != nil {
			t.Error(err)
		}
	}
	names := []string{"p_owner" + id, "p_app" + id, "p_system" + id, "p_admin" + id}
	t.Cleanup(func() {
		exec("drop database if exists p" + id + " with (force)")
		for _, n := range names {
			exec("drop role if exists " + n)
		}
		_ = super.Close(context.Background()) // the test is over
	})
	exec("create role p_admin" + id + " login createdb createrole password 'admin'")
	address := func(role, password, database string) string {
		u, err := url.Parse(testkit.Superuser(t))
		if err != nil {
			t.Fatal(err)
		}
		u.User, u.Path = url.UserPassword(role, password), "/"+database
		return u.String()
	}
	for _, password := range []string{"first", "second"} {
		urls := make([]string, 3)
		for i := range urls {
			urls[i] = address(names[i], password, "p"+id)
		}
		if err := schema.Prepare(ctx, address(names[3], "admin", "postgres"), urls[0], urls[1:]...); err != nil {
			t.Fatal(err)
		}
		for _, u := range urls {
			conn, err := pgx.Connect(ctx, u)
			if err != nil {
				t.Fatal(err)
			}
			var order string
			if err := conn.QueryRow(ctx, "select string_agg(v, '' order by v) from unnest(array['a', 'B', 'ä', 'Z']) v").Scan(&order); err != nil || order != "BZaä" {
				t.Errorf("text is ordered as %q, %v", order, err)
			}
			if err := conn.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		if _, _, err := schema.Migrate(ctx, urls[0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPrepareNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ owner, want string }{
		{"postgres://host/longbox", "postgres://role:password@host/database"},
		{"postgres://owner:x@host", "postgres://role:password@host/database"},
		{"postgres://owner:a%27b@host/longbox", "role owner: the password"},
	} {
		err := schema.Prepare(t.Context(), testkit.Superuser(t), c.owner)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "a'b") {
			t.Errorf("%s: %v", c.owner, err)
		}
	}
}
