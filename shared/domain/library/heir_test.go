package library_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/library"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/fault"
	"github.com/longbox/longbox/shared/testkit"
)

// heirs creates that many series in the first library, each with a rating and an heir in the second.
func heirs(t *testing.T, f *fixture, admin *testkit.Client, series int) (was, is uuid.UUID) {
	t.Helper()
	ids := twice(t, f, admin, 0)
	f.DB.Exec(t, "delete from series where tenant_id = $1", f.One)
	f.DB.Exec(t, `with h as (
		  insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
		  select $1, gen_random_uuid(), $3, n, n, n, n, n from (select 's' || i as n from generate_series(1, $4) i) s returning id, path),
		s as (
		  insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title, heir)
		  select $1, gen_random_uuid(), $2, path, path, path, path, path, id from h returning id)
		insert into series_rating (tenant_id, account_id, series_id, id, rating) select $1, $5, id, gen_random_uuid(), 90 from s`, f.One, ids[0], ids[1], series, admin.ID)
	return uuid.MustParse(ids[0]), uuid.MustParse(ids[1])
}

// rated counts the series of a library that have a rating.
func rated(t *testing.T, f *fixture, library uuid.UUID) (n int) {
	t.Helper()
	if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select count(*) from series_rating r join series s on s.id = r.series_id where s.library_id = $1", library).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Data of many series is handed over in parts, without a statement timeout; an interruption loses nothing, and the next
// call continues.
func TestSeriesAreHandedOverInParts(t *testing.T) {
	t.Parallel()
	f := serve(t)
	admin := f.User(t, "one", "admin")
	was, is := heirs(t, f, admin, 450)
	f.DB.Exec(t, `create function public.hurry() returns trigger language plpgsql as $$ begin
		if current_setting('statement_timeout') <> '0' then raise exception 'there are only %', current_setting('statement_timeout'); end if; return null; end $$`)
	f.DB.Exec(t, "create trigger hurry after insert on series_rating for each statement execute function public.hurry()")
	err := library.Leave(f.In(f.One), f.DB.App, was, -time.Second)
	first := rated(t, f, is)
	if !fault.Is(err, fault.Unavailable) || first == 0 || first == 450 {
		t.Fatalf("%d series are handed over: %v", first, err)
	}
	// Somebody has removed the rating.
	f.DB.Exec(t, "delete from series_rating r using series s where s.id = r.series_id and s.library_id = $1", is)
	if err := library.Leave(f.In(f.One), f.DB.App, was, time.Minute); err != nil {
		t.Fatal(err)
	}
	if rest := rated(t, f, is); first+rest != 450 {
		t.Errorf("%d series are handed over after the first %d", rest, first)
	}
	admin.Do("DELETE", path+"/"+was.String(), nil).Want(204)
}

// An heir may be deleted at the same time: the last one in the chain inherits the data of all; of two texts it gets the
// older.
func TestHeirsOfHeirs(t *testing.T) {
	t.Parallel()
	const many = 30
	for name, removes := range map[string]func(f *fixture, admin *testkit.Client, library uuid.UUID){
		"the library is deleted": func(_ *fixture, admin *testkit.Client, library uuid.UUID) {
			admin.Do("DELETE", path+"/"+library.String(), nil).Want(204)
		},
		"they are empty": func(f *fixture, _ *testkit.Client, library uuid.UUID) {
			if _, err := db.Exec(f.In(f.One), f.DB.App, "select app.drop_empty_series(array(select id from series where tenant_id = app.tenant() and library_id = $1))", library); err != nil {
				t.Fatal(err)
			}
		},
		"they are empty, one after the other": func(f *fixture, _ *testkit.Client, library uuid.UUID) {
			for _, order := range []string{"id", "path"} { // half of them in an order unrelated to the chain, and the rest
				var ids []uuid.UUID
				row := f.DB.Owner.Pool().QueryRow(t.Context(), "select array(select id from series where library_id = $1 order by "+order+" limit $2)", library, many/2+2)
				if err := row.Scan(&ids); err != nil {
					t.Fatal(err)
				}
				for _, id := range ids {
					if _, err := db.Exec(f.In(f.One), f.DB.App, "select app.drop_empty_series(array[$1::uuid])", id); err != nil {
						t.Fatal(err)
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			admin := f.User(t, "one", "admin")
			was, is := heirs(t, f, admin, many)
			// Each is the heir of another, regardless of paths and ids; one has its heir in the other library, and two
			// are each other's.
			f.DB.Exec(t, `update series s set heir = n.id, summary = s.path from (select id, lead(id) over (order by path desc) as next from series where library_id = $1) x
				join series n on n.id = coalesce(x.next, (select id from series where library_id = $2 and path = 's1')) where s.id = x.id`, was, is)
			f.DB.Exec(t, `with s as (insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title)
				select $1, gen_random_uuid(), $2, n, n, n, n, n from unnest('{round,about}'::text[]) n returning id, path) select from s`, f.One, was)
			f.DB.Exec(t, "update series s set heir = n.id from series n where s.library_id = $1 and n.library_id = $1 and s.path in ('round', 'about') and n.path in ('round', 'about') and s.id <> n.id", was)
			f.DB.Exec(t, `insert into external_link (tenant_id, id, series_id, source_name, url) select tenant_id, gen_random_uuid(), id, path, 'https://example.org' from series where library_id = $1`, was)
			f.DB.Exec(t, "update series set created_at = created_at + interval '1 second' where library_id = $1", is)
			removes(f, admin, was)
			var got string
			row := f.DB.Owner.Pool().QueryRow(t.Context(), `select concat_ws(' ', (select count(*) from series where library_id = $1),
				(select string_agg(s.path || ' ' || n, ' ') from (select series_id, count(*) as n from external_link group by 1) l join series s on s.id = l.series_id),
				(select string_agg(s.path, ' ') from series_rating r join series s on s.id = r.series_id),
				(select summary from series where library_id = $2 and path = 's1'))`, was, is)
			if err := row.Scan(&got); err != nil || got != "0 s1 "+strconv.Itoa(many)+" s1 s9" {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}
