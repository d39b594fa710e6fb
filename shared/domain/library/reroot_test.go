package library_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/filesystem"
	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

// After roots have changed, a library gets the bucket that serves its path now, unless its old one is still served.
// Libraries that nothing serves any more are named.
func TestReroot(t *testing.T) {
	t.Parallel()
	d := testkit.DB(t)
	one, two := d.Tenant(t, "one"), d.Tenant(t, "two")
	places := map[string][3]string{ // bucket and prefix before, and after
		"/srv/comics":       {"comics", "", "srv/comics/"},
		"/srv/comics/a b":   {"comics", "a b/", "srv/comics/a b/"},
		"/srv/manga/jp":     {"all", "srv/manga/jp/", "manga/jp/"},
		"/srv/manga/x":      {"manga", "x/", "manga/x/"},
		"/srv/both":         {"kept", "both/", "kept/both/"}, // served by another root, too
		"/elsewhere":        {"elsewhere", "", "elsewhere/"}, // below no root
		"s3://comics/a":     {"comics", "a/", "comics/a/"},   // below no root, either
		"s3://manga/jp/a b": {"manga", "jp/a b/", "manga/jp/a b/"},
	}
	for path, p := range places {
		for _, tenant := range []uuid.UUID{one, two} {
			d.Exec(t, `insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
				values ($1, gen_random_uuid(), $2, $2, $3, $4, 'series_volume', 'filename', 'smart')`, tenant, path, p[0], p[1])
		}
	}
	roots := []filesystem.Root{{Path: "/srv", Bucket: "srv"}, {Path: "/srv/manga", Bucket: "manga"}, {Path: "/kept", Bucket: "kept"}}
	for range 2 { // it may be repeated
		lost, err := library.Reroot(db.In(t.Context(), db.Tenant(one)), d.Owner, roots)
		if err != nil {
			t.Fatal(err)
		}
		if len(lost) != 2 || lost[0].Name != "/elsewhere" || lost[0].Path != "/elsewhere" || lost[1].Name != "s3://comics/a" {
			t.Errorf("below no root are %v, want /elsewhere and s3://comics/a", lost)
		}
	}
	rows, err := d.Owner.Pool().Query(t.Context(), "select tenant_id, path, bucket || '/' || prefix from library")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var tenant uuid.UUID
		var path, got string
		if err := rows.Scan(&tenant, &path, &got); err != nil {
			t.Fatal(err)
		}
		want := places[path][2]
		if tenant == two {
			want = places[path][0] + "/" + places[path][1]
		}
		if got != want {
			t.Errorf("%s lies in %s, want %s", path, got, want)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
