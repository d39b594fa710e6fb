package db_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/longbox/longbox/shared/testkit"
)

func TestUUIDs(t *testing.T) {
	t.Parallel()
	pool := testkit.DB(t).App.Pool()
	a, b := uuid.New(), uuid.New()
	var one, null uuid.UUID
	var there, none *uuid.UUID
	var many []uuid.UUID
	var some []*uuid.UUID
	null = a
	err := pool.QueryRow(context.Background(), "select $1::uuid, $2::uuid, $1::uuid, $2::uuid, $3::uuid[], $4::uuid[]",
		a, (*uuid.UUID)(nil), []uuid.UUID{a, b}, []*uuid.UUID{&b, nil}).Scan(&one, &null, &there, &none, &many, &some)
	if err != nil {
		t.Fatal(err)
	}
	if one != a || null != uuid.Nil || there == nil || *there != a || none != nil || !slices.Equal(many, []uuid.UUID{a, b}) ||
		len(some) != 2 || *some[0] != b || some[1] != nil {
		t.Errorf("came back as %v %v %v %v %v %v", one, null, there, none, many, some)
	}
	var text string
	if err := pool.QueryRow(context.Background(), "select $1::uuid::text", a).Scan(&text); err != nil || text != a.String() {
		t.Errorf("%s arrived as %s, %v", a, text, err)
	}
	if err := pool.QueryRow(context.Background(), "select 'x'::text").Scan(&one); err == nil {
		t.Error("a text was taken for a UUID")
	}
}

// BenchmarkUUIDs sends a thousand ids and reads them back.
func BenchmarkUUIDs(b *testing.B) {
	pool := testkit.DB(b).App.Pool()
	ids := make([]uuid.UUID, 1000)
	for i := range ids {
		ids[i] = uuid.New()
	}
	for b.Loop() {
		rows, err := pool.Query(context.Background(), "select unnest($1::uuid[])", ids)
		if err != nil {
			b.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil || len(got) != len(ids) {
			b.Fatal(len(got), err)
		}
	}
}
