package db_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/testkit"
)

type identified struct {
	ID uuid.UUID `db:"id"`
}

type listed struct {
	identified
	Note string
	Key  string     `db:"key"`
	At   *time.Time `db:"at"`
	Tags []string   `db:"tags"`
	skip int
}

const listing = `select 'note ' || i as note, ('00000000-0000-0000-0000-' || lpad(i::text, 12, '0'))::uuid as id, 'key ' || i as key,
	case when i % 2 = 0 then 'epoch'::timestamptz + make_interval(secs => i) end as at,
	case when i % 3 = 0 then array['a' || i, 'b' || i] end as tags from generate_series(1, 1000) i`

func TestRows(t *testing.T) {
	d := testkit.DB(t).App
	ctx := db.In(context.Background(), db.Tenant(uuid.New()))
	got, err := db.List[listed](ctx, d, listing)
	if err != nil || len(got) != 1000 {
		t.Fatal(len(got), err)
	}
	for at, r := range got { // nothing of a row is left in the next
		i := at + 1
		n := strconv.Itoa(i)
		if r.ID.String() != fmt.Sprintf("00000000-0000-0000-0000-%012d", i) || r.Key != "key "+n || r.Note != "note "+n || r.skip != 0 {
			t.Fatalf("row %d: %+v", i, r)
		}
		if i%2 == 0 != (r.At != nil) || r.At != nil && r.At.Unix() != int64(i) {
			t.Fatalf("row %d: at %v", i, r.At)
		}
		if want := "a" + n + " b" + n; i%3 == 0 && strings.Join(r.Tags, " ") != want || i%3 != 0 && r.Tags != nil {
			t.Fatalf("row %d: tags %q", i, r.Tags)
		}
	}
	for _, sql := range []string{
		"select 1 as other from generate_series(1, 2)",
		strings.Replace(listing, "'key ' || i as key,", "", 1),
		strings.Replace(listing, "'key ' || i as key,", "case when i < 5 then 'x' end as key,", 1),
	} {
		if got, err := db.List[listed](ctx, d, sql); err == nil {
			t.Errorf("%s: %d rows", sql, len(got))
		}
	}
}

// BenchmarkRows reads a thousand rows.
func BenchmarkRows(b *testing.B) {
	d := testkit.DB(b).App
	ctx := db.In(context.Background(), db.Tenant(uuid.New()))
	for b.Loop() {
		if got, err := db.List[listed](ctx, d, listing); err != nil || len(got) != 1000 {
			b.Fatal(len(got), err)
		}
	}
}
