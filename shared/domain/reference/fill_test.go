package reference_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/reference"
)

// Titles from before the search text was stored are found by their text, and get it in batches.
func TestFill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	me := r.User(t, "one", "admin")
	kept := func(which string) (n int) {
		t.Helper()
		if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from alternate_title where "+which).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	found := func(query string, want float64) {
		t.Helper()
		if got := me.Do("POST", "/api/v1/series/search", `{"query":"`+query+`"}`).Want(200).Map()["total"]; got != want {
			t.Errorf("%s: %v found, want %v", query, got, want)
		}
	}
	r.DB.Exec(t, `insert into alternate_title (tenant_id, id, series_id, label, title)
		select tenant_id, gen_random_uuid(), id, 'l' || n, 'Légende  ' || n from series, generate_series(1, 5) n`)
	if n := kept("search_title = 'legende ' || substr(label, 2)"); n != 5 {
		t.Errorf("of 5 new titles %d have what is searched for", n)
	}
	r.DB.Exec(t, "update alternate_title set search_title = null where label <> 'l1'") // the state before the migration
	r.DB.Exec(t, "insert into alternate_title_fill (tenant_id) values ($1), ($2)", r.One, r.Two)
	found("legende 3", 1)
	fill := reference.Fill
	fill.AtOnce = 2
	for range 2 { // the second run has nothing to do
		if err := fill.Run(t.Context(), r.DB.System, time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := kept("search_title is null"); n != 0 {
			t.Errorf("%d titles are left", n)
		}
		found("legende 3", 1)
	}
	var left int
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from alternate_title_fill").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d tenants are left, %v", left, err)
	}

	var id uuid.UUID
	if err := r.DB.Owner.Pool().QueryRow(t.Context(), "select id from alternate_title where label = 'l3'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	me.Do("PATCH", r.series+"/alternate-titles/"+id.String(), `{"title":"Ödland"}`).Want(200)
	found("legende 3", 0)
	found("odland", 1)
}
