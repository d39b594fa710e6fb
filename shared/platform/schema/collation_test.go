package schema_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/platform/schema"
	"github.com/longbox/longbox/shared/testkit"
)

// After an upgrade of the system text is ordered by another version of its rules: the indexes that the old one has
// ordered are made anew at the next start, once.
func TestAnotherVersionOfTheCollation(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	const index = "(select min(indexrelid) from pg_index i join pg_collation c on c.oid = any(i.indcollation) where collname = 'natural_order')"
	state := func() (file int64, current bool) {
		t.Helper()
		err := d.Owner.Pool().QueryRow(t.Context(), "select pg_relation_filenode("+index+`)::bigint, collversion = pg_collation_actual_version(oid)
			from pg_collation where collname = 'natural_order'`).Scan(&file, &current)
		if err != nil {
			t.Fatal(err)
		}
		return file, current
	}
	migrate := func(want bool) {
		t.Helper()
		applied, reindexed, err := schema.Migrate(t.Context(), d.OwnerURL)
		if err != nil || applied != 0 || reindexed > 0 != want {
			t.Errorf("%d steps, %d indexes, %v: want indexes made anew: %v", applied, reindexed, err, want)
		}
	}
	before, _ := state()
	migrate(false)
	pretendOld(t, d.OwnerURL)
	migrate(true)
	after, current := state()
	if after == before || !current {
		t.Errorf("the index is made anew: %v, the collation is of this version: %v", after != before, current)
	}
	migrate(false)
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
