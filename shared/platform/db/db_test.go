package db_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

func TestNoTenantSeesNothing(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	d.Tenant(t, "one")
	var n int
	if err := d.App.Pool().QueryRow(context.Background(), "select count(*) from tenant").Scan(&n); err != nil || n != 0 {
		t.Fatalf("without a tenant: %d rows, %v", n, err)
	}
	if _, err := d.App.Pool().Exec(context.Background(),
		"insert into library_root (tenant_id, path, bucket) values ($1, '/x', 'x')", uuid.New()); err == nil {
		t.Fatal("an insert without a tenant went through")
	}
}

func TestScopeSeesItsOwn(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	one, two := d.Tenant(t, "one"), d.Tenant(t, "two")
	ctx := db.In(context.Background(), db.Tenant(one))
	if n, err := db.Exec(ctx, d.App, "insert into library_root (tenant_id, path, bucket) values ($1, '/x', 'x')", one); err != nil || n != 1 {
		t.Fatalf("own insert: %d, %v", n, err)
	}
	if _, err := db.Exec(ctx, d.App, "insert into library_root (tenant_id, path, bucket) values ($1, '/y', 'y')", two); err == nil {
		t.Fatal("an insert for another tenant went through")
	}
	other := db.In(context.Background(), db.Tenant(two))
	got, err := db.List[struct{ Path string }](other, d.App, "select path from library_root")
	if err != nil || len(got) != 0 {
		t.Fatalf("another tenant sees %v, %v", got, err)
	}
}
