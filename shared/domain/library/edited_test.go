package library_test

import "testing"

// An edit locks only titles. What people and plugins have written moves with series and books to the library that has
// the files now, even if nobody has read them.
func TestDeletionLeavesWhatIsEdited(t *testing.T) {
	t.Parallel()
	tag := "with t as (insert into tag (tenant_id, id, name) values ($1, gen_random_uuid(), 'keep') returning id) "
	for what, sql := range map[string]string{
		"summary":         "update series set summary = 'mine' where tenant_id = $1 and library_id = $2",
		"sort title":      "update series set custom_title_sort = 'z' where tenant_id = $1 and library_id = $2",
		"cover":           "update series set cover_source = 'first_book' where tenant_id = $1 and library_id = $2",
		"authors":         `update series set authors = '[{"name":"a"}]' where tenant_id = $1 and library_id = $2`,
		"tag":             tag + "insert into series_tag (tenant_id, series_id, tag_id) select $1, s.id, t.id from series s, t where s.library_id = $2",
		"alternate title": "insert into alternate_title (tenant_id, id, series_id, label, title) select $1, gen_random_uuid(), id, 'en', 'Other' from series where library_id = $2",
		"id":              "insert into external_id (tenant_id, id, series_id, source, external_id) select $1, gen_random_uuid(), id, 'plugin:p', '1' from series where library_id = $2",
		"link":            "insert into external_link (tenant_id, id, series_id, source_name, url) select $1, gen_random_uuid(), id, 'a', 'https://example.org' from series where library_id = $2",
		"rating":          "insert into external_rating (tenant_id, id, series_id, source_name, rating) select $1, gen_random_uuid(), id, 'a', 50 from series where library_id = $2",
		"tag of a book":   tag + "insert into book_tag (tenant_id, book_id, tag_id) select $1, b.id, t.id from book b, t where b.library_id = $2",
		"id of a book":    "insert into external_id (tenant_id, id, book_id, source, external_id) select $1, gen_random_uuid(), id, 'plugin:p', '1' from book where library_id = $2",
		"link of a book":  "insert into external_link (tenant_id, id, book_id, source_name, url) select $1, gen_random_uuid(), id, 'a', 'https://example.org' from book where library_id = $2",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			admin := f.User(t, "one", "admin")
			ids := twice(t, f, admin, 1)
			var was, is string
			query := func(out *string, library string) {
				t.Helper()
				if err := f.DB.Owner.Pool().QueryRow(t.Context(), "select id::text from book where library_id = $1", library).Scan(out); err != nil {
					t.Fatal(err)
				}
			}
			query(&was, ids[0])
			f.DB.Exec(t, sql, f.One, ids[0])
			admin.Do("DELETE", path+"/"+ids[0], nil).Want(204)
			if query(&is, ids[1]); is != was {
				t.Errorf("its book is gone, and with it what was written")
			}
		})
	}
}
