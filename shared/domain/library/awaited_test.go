package library_test

import (
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/testkit"
)

// reads sets a user's progress in a book of a library.
func reads(t *testing.T, f *fixture, user *testkit.Client, library, key string) {
	t.Helper()
	f.DB.Exec(t, `insert into progress (tenant_id, account_id, book_id, id, current_page) select tenant_id, $1, id, gen_random_uuid(), 2
		from book where library_id = $2 and key = $3`, user.ID, library, key)
}

// While another library may soon find files that people have read here, this one is not deleted.
func TestDeletionAwaitsTheOtherLibrary(t *testing.T) {
	t.Parallel()
	const (
		scans    = "insert into task (tenant_id, id, type, library_id, status) values ($1, $2, 'scan_library', $2, 'running')"
		analyses = "insert into task (tenant_id, id, type, library_id) values ($1, $2, 'analyze_books', $2)"
		ends     = "update task set status = 'completed' where tenant_id = $1 and library_id = $2"
		later    = "insert into task (tenant_id, id, type, library_id, scheduled_for) values ($1, $2, 'scan_library', $2, now() + interval '1 hour')"
		unread   = "update book set analyzed = false, fingerprint = '' where tenant_id = $1 and library_id = $2"
		larger   = "update book set size = size + 1 where tenant_id = $1 and library_id = $2"
		refuses  = `with t as (insert into task (tenant_id, id, type, library_id, status) values ($1, $2, 'scan_library', $2, 'completed') returning tenant_id, id)
			insert into scan (tenant_id, id, library_id, mode, files_refused) select tenant_id, id, id, 'normal', 1 from t`
		closed = `with t as (insert into task (tenant_id, id, type, library_id, status) values ($1, $2, 'scan_library', $2, 'completed') returning tenant_id, id)
			insert into scan (tenant_id, id, library_id, mode, unlisted) select tenant_id, id, id, 'normal', 1 from t`
		room = `with t as (insert into task (tenant_id, id, type, library_id, status) select $1, max(s.id::text)::uuid, 'scan_library', $2, 'completed' from (values ('ffffffff-0000-7000-8000-000000000000')) s(id) returning tenant_id, id)
			insert into scan (tenant_id, id, library_id, mode) select tenant_id, id, $2, 'normal' from t`
		missed = "update book set deleted_at = now() where tenant_id = $1 and library_id <> $2 and key = 's/1.cbz'"
	)
	for name, c := range map[string]struct {
		other []string // state of the other library
		says  string   // empty if the library may be deleted
	}{
		"it is scanned":                               {[]string{scans}, "A scan of the library new is pending or running"},
		"it has been scanned":                         {[]string{scans, ends}, ""},
		"it is to be scanned in an hour":              {[]string{later}, ""},
		"its new files are read":                      {[]string{unread, analyses}, "The library new has new files that are not read yet"},
		"its new files are read, and of another size": {[]string{unread, larger, analyses}, ""},
		"its files are read again":                    {[]string{analyses}, ""},
		"new files of it could not be read":           {[]string{unread, analyses, ends}, ""},
		"the limit keeps files out":                   {[]string{refuses}, ""}, // it is deleted to make room
		"the limit keeps files out, and one is gone":  {[]string{refuses, missed}, "; make room and scan that library first. To make room, exclude some folders of this library (excludedPatterns)"},
		"there is room again":                         {[]string{refuses, missed, room}, ""},
		"a folder cannot be listed":                   {[]string{closed}, ""},
		"a folder cannot be listed, and one is gone":  {[]string{closed, missed}, "Folders of the library new could not be listed"},
		"all folders can be listed again":             {[]string{closed, missed, room}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			admin := f.User(t, "one", "admin")
			ids := twice(t, f, admin, 2)
			for _, sql := range c.other {
				f.DB.Exec(t, sql, f.One, ids[1])
			}
			gone := admin.Do("POST", path, `{"name":"empty","path":"/books/empty"}`).Want(201).Map()["id"].(string)
			admin.Do("DELETE", path+"/"+gone, nil).Want(204) // nothing is lost
			reads(t, f, admin, ids[0], "s/1.cbz")
			f.events = nil
			answer := admin.Do("DELETE", path+"/"+ids[0], nil)
			if c.says == "" {
				answer.Want(204)
				return
			}
			if got := string(answer.Want(409).Body); !strings.Contains(got, c.says) {
				t.Error(got)
			}
			if l := admin.Do("GET", path+"/"+ids[0], nil).Want(200).Map(); l["isActive"] != true || len(f.events) != 0 {
				t.Errorf("refused, and yet %v, events %v", l, f.events)
			}
			f.DB.Exec(t, "delete from progress where account_id = $1", admin.ID)
			admin.Do("DELETE", path+"/"+ids[0], nil).Want(204)
		})
	}
}
