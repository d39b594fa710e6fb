package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// A library whose folder is in no root any more is named: it looks as if its books were gone.
func TestNamesLibrariesThatNothingServes(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	start := func(roots string) []string {
		t.Helper()
		done, err := migrate(t.Context(), config{OwnerURL: d.OwnerURL, Single: true, Roots: roots})
		if err != nil {
			t.Fatal(err)
		}
		return done.Warnings
	}
	if said := start("/srv/comics=comics"); len(said) != 0 {
		t.Errorf("said %q", said)
	}
	d.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
		select id, id, 'Comics', '/srv/comics/us', 'comics', 'us/', 'series_volume', 'filename', 'smart' from tenant where name = 'default'`)
	for _, roots := range []string{"/mnt/nas=nas", ""} {
		said := start(roots)
		if len(said) != 1 || !strings.HasPrefix(said[0], `library "Comics" is at /srv/comics/us, which is in no folder of LIBRARY `) ||
			!strings.Contains(said[0], "PATCH /api/v1/libraries/") {
			t.Errorf("with roots %q: said %q", roots, said)
		}
	}
	if said := start("/srv=srv"); len(said) != 0 {
		t.Errorf("said %q", said)
	}
}

// Programs may be one release older than the schema. That is said, and prevents nothing.
func TestSaysThatTheSchemaIsNewer(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	done, err := migrate(t.Context(), config{OwnerURL: d.OwnerURL})
	if err != nil || len(done.Warnings) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	own := done.Version
	d.Exec(t, "insert into goose_db_version (version_id, is_applied) values (99999, true)")
	done, err = migrate(t.Context(), config{OwnerURL: d.OwnerURL})
	want := fmt.Sprintf("of a newer Longbox (99999, this one has %d)", own)
	if err != nil || done.Version != 99999 || len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], want) {
		t.Errorf("%+v, %v, want %q", done, err, want)
	}
}
