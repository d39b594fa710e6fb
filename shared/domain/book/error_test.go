package book_test

import (
	"maps"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/platform/db"
	"github.com/longbox/longbox/shared/platform/httpapi"
	"github.com/longbox/longbox/shared/testkit"
)

func TestBooksThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, func(a *httpapi.API, d *db.DB) {
		book.Routes(a, d, nil, nil)
	})
	c, other := s.User(t, "one", auth.Maintainer), s.User(t, "two", auth.Admin)
	exec := func(sql string, args ...any) {
		t.Helper()
		s.DB.Exec(t, sql, args...)
	}
	libraries := []uuid.UUID{uuid.New(), uuid.New()}
	for i, library := range libraries {
		exec(`insert into library (tenant_id, id, name, path, bucket, prefix, series_strategy, book_strategy, number_strategy)
			values ($1, $2, $3, 's3://b', 'b', '', 'series_volume', 'filename', 'file_order')`, c.Tenant, library, library.String())
		exec(`insert into series (tenant_id, id, library_id, path, name, title, title_sort, search_title) values ($1, $2, $2, 'S', 'S', 'S', 'S', 's')`, c.Tenant, library)
		exec(`insert into book (tenant_id, id, library_id, series_id, key, size, modified_at, format, title, title_sort, search_title, error_type, error_message, error_at)
			select $1, gen_random_uuid(), $2, $2, n::text, 1, now(), 'cbz', n::text, n::text, n::text, case when n % 3 > 0 then (array['encrypted', 'killed'])[n % 3] end,
			  case when n % 3 > 0 then 'because' end, case when n % 3 > 0 then now() + n * interval '1 second' end from generate_series(1, $3) n`, c.Tenant, library, 90*(i+1))
	}
	exec("update book set deleted_at = now() where key = '1'")
	type list struct {
		Total       int
		ErrorCounts map[string]int
		Data        []struct {
			Book   struct{ ID, LibraryID, Title string }
			Errors []struct{ ErrorType, Message string }
		}
	}
	errorsOf := func(query string) (l list) {
		t.Helper()
		c.Do("GET", "/api/v1/books/errors"+query, nil).Want(200).JSON(&l)
		return l
	}
	if l := errorsOf("?pageSize=2"); l.Total != 178 || len(l.Data) != 2 || l.Data[0].Book.Title != "179" || l.Data[0].Errors[0].ErrorType != "killed" || l.Data[0].Errors[0].Message != "because" {
		t.Errorf("%+v", l)
	}
	if l := errorsOf("?errorType=encrypted&libraryId=" + libraries[0].String()); l.Total != 29 || l.Data[0].Book.Title != "88" || l.Data[0].Errors[0].ErrorType != "encrypted" {
		t.Errorf("%d: %+v", l.Total, l.Data[0])
	}
	c.Do("GET", "/api/v1/books/errors?errorType=bad", nil).Want(400)
	// The counts cover the whole library or series, whichever error type and page is listed.
	for query, want := range map[string]map[string]int{
		"": {"encrypted": 88, "killed": 90}, "?errorType=timeout": {"encrypted": 88, "killed": 90}, "?page=9&errorType=killed": {"encrypted": 88, "killed": 90},
		"?libraryId=" + libraries[0].String(): {"encrypted": 29, "killed": 30}, "?seriesId=" + libraries[1].String() + "&errorType=killed": {"encrypted": 59, "killed": 60},
		"?libraryId=" + uuid.NewString(): {},
	} {
		if l := errorsOf(query); !maps.Equal(l.ErrorCounts, want) {
			t.Errorf("%s: %v, want %v", query, l.ErrorCounts, want)
		}
	}
	raw := c.Do("GET", "/api/v1/books/errors?pageSize=10&page=2", nil).Want(200).Map()
	if raw["page"] != 2.0 || raw["totalPages"] != 18.0 || raw["links"].(map[string]any)["next"] == nil {
		t.Errorf("the envelope: %v", raw)
	}
	if raw := other.Do("GET", "/api/v1/books/errors", nil).Want(200).Map(); len(raw["data"].([]any)) != 0 || len(raw["errorCounts"].(map[string]any)) != 0 {
		t.Errorf("another tenant: %v", raw)
	}

	// If the tasks cannot be added, the errors stay.
	exec("create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$")
	exec("create trigger refuse before insert on task for each statement execute function public.refuse()")
	c.Do("POST", "/api/v1/books/retry-all-errors", nil).Want(500)
	if l := errorsOf(""); l.Total != 178 {
		t.Errorf("%d errors are left of 178, and no task reads the books", l.Total)
	}
	exec("drop trigger refuse on task")

	killed := errorsOf("?errorType=killed&libraryId=" + libraries[0].String())
	one := "/api/v1/books/" + killed.Data[0].Book.ID + "/retry"
	c.Do("POST", one, map[string]any{"errorTypes": []string{"timeout"}}).Want(400)
	if got := c.Do("POST", one, nil).Want(200).Map(); got["tasksEnqueued"] != 1.0 || got["taskId"] == nil {
		t.Errorf("%v", got)
	}
	c.Do("POST", one, nil).Want(400) // it has no error any more
	other.Do("POST", one, nil).Want(404)
	if got := c.Do("POST", "/api/v1/books/retry-all-errors", map[string]any{"errorType": "killed", "libraryId": libraries[0]}).Want(200).Map(); got["books"] != 29.0 || got["tasksEnqueued"] != 1.0 {
		t.Errorf("%v", got)
	}
	exec("insert into setting (tenant_id, key, value) values ($1, 'scanner.batch_size', '30')", c.Tenant)
	if got := c.Do("POST", "/api/v1/books/retry-all-errors", nil).Want(200).Map(); got["books"] != 148.0 || got["tasksEnqueued"] != 5.0 {
		t.Errorf("%v", got)
	}
	if l := errorsOf(""); l.Total != 0 {
		t.Errorf("%d errors are left", l.Total)
	}
	if got := c.Do("POST", "/api/v1/books/retry-all-errors", nil).Want(200).Map(); got["books"] != 0.0 || got["taskId"] != nil {
		t.Errorf("%v", got)
	}
	s.User(t, "one", auth.Reader).Do("POST", one, nil).Want(403)
}
