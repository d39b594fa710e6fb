package schema_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/schema"
	"github.com/longbox/longbox/shared/testkit"
)

// After a system upgrade with another version of the collation, its indexes are rebuilt at the next start, once.
func TestAnotherVersionOfTheCollation(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	state := func() (files []string, current bool) {
		t.Helper()
		err := d.Owner.Pool().QueryRow(t.Context(), `select array_agg(pg_relation_filenode(indexrelid)::text order by indexrelid),
			bool_and(collversion = pg_collation_actual_version(c.oid))
			from pg_index i join pg_collation c on c.oid = any(i.indcollation) where collname = 'natural_order'`).Scan(&files, &current)
		if err != nil {
			t.Fatal(err)
		}
		return files, current
	}
	before, _ := state()
	migrate := func(want int) {
		t.Helper()
		applied, reindexed, err := schema.Migrate(t.Context(), d.OwnerURL)
		if err != nil || applied != 0 || reindexed != want {
			t.Errorf("%d steps, %d indexes made anew, %v: want %d indexes", applied, reindexed, err, want)
		}
	}
	migrate(0)
	pretendOld(t, d.OwnerURL)
	migrate(len(before))
	after, current := state()
	for i, file := range after {
		if file == before[i] {
			t.Errorf("index %d of %d is the old one", i+1, len(after))
		}
	}
	if !current {
		t.Error("the collation is still of another version")
	}
	migrate(0)
}

// pretendOld says that the collation of the database was of another version when its indexes were made.
func pretendOld(t *testing.T, database string) {
	t.Helper()
	super, err := url.Parse(testkit.Superuser(t))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	super.Path = u.Path
	conn, err := pgx.Connect(t.Context(), super.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "update pg_collation set collversion = '1.0' where collname = 'natural_order'"); err != nil {
		t.Fatal(err)
	}
}
