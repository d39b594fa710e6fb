package scanner_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/scan"
	"github.com/longbox/longbox/shared/testkit"
)

// A file in two libraries is a book in each, even while only one of them knows its new name.
func TestLibrariesShareAFile(t *testing.T) {
	t.Parallel()
	const from, to = "S/01.cbz", "T/one.cbz"
	for name, learn := range map[string]func(r *two){
		"scans": func(r *two) { r.scans(r.a, r.b) },
		"announced to one after the other": func(r *two) {
			for _, library := range []uuid.UUID{r.a, r.b} {
				r.announced(library, from)
				r.announced(library, to)
			}
		},
		"announced to one first, creation first": func(r *two) {
			for _, library := range []uuid.UUID{r.a, r.b} {
				r.announced(library, to)
				r.announced(library, from)
			}
		},
		"announced crosswise": func(r *two) {
			r.announced(r.b, from)
			r.announced(r.a, to)
			r.announced(r.a, from)
			r.announced(r.b, to)
		},
		"a scan of one, announced to the other": func(r *two) {
			r.announced(r.b, from)
			r.scans(r.a)
			r.announced(r.b, to)
		},
		"a scan of one folder": func(r *two) {
			r.announced(r.a, from)
			r.announced(r.a, to)
			r.library = r.b
			r.scanWith(scan.Params{Mode: "normal", Path: "S"})
			r.scans(r.b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &two{rig: newRig(t), b: uuid.New()}
			r.a = r.library
			r.exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
				values ($1, $2, 'b', '/books', 'books', '', 'series_volume', 'metadata_first', 'smart')`, r.tenant, r.b)
			testkit.WriteFile(t, r.folder, from, r.numbered(3))
			testkit.WriteFile(t, r.folder, "S/other.cbz", r.numbered(4))
			testkit.WriteFile(t, r.folder, "T/other.cbz", r.numbered(5))
			r.scans(r.a, r.b)
			for user, library := range map[string]uuid.UUID{"ann": r.a, "bob": r.b} {
				r.read(user, "none", 1)
				r.exec("insert into progress (tenant_id, account_id, book_id, id, current_page) select $1, $2, id, gen_random_uuid(), 2 from book where library_id = $3 and key = $4",
					r.tenant, uuid.NewSHA1(uuid.Nil, []byte(user)), library, from)
			}
			rows := `select l.name || ' ' || b.id || ' ' || a.username from book b join library l on l.tenant_id = b.tenant_id and l.id = b.library_id
				join progress p on p.tenant_id = b.tenant_id and p.book_id = b.id join account a on a.tenant_id = b.tenant_id and a.id = p.account_id
				where b.tenant_id = app.tenant() and b.deleted_at is null and b.key = `
			before := values[string](r.rig, rows+"'"+from+"'")
			r.rename(from, to)
			learn(r)
			same(t, "books", values[string](r.rig, rows+"'"+to+"'"), before)
			if n := values[int](r.rig, "select count(*) from book where tenant_id = app.tenant() and key = $1", to)[0]; n != 2 || len(before) != 2 {
				t.Errorf("%d books of the file, %d before", n, len(before))
			}
			r.counted()
		})
	}
}
