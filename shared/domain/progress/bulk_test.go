package progress_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

func TestReadSeveralBooks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series, books := shelf(t, s, 4)
	me, foreigner := s.User(t, "one", "reader"), s.User(t, "two", "admin")
	if _, err := s.DB.Owner.Pool().Exec(context.Background(), "update book set deleted_at = now() where id = $1", books[3]); err != nil {
		t.Fatal(err)
	}
	do := func(who *testkit.Client, word string, count float64, ids ...uuid.UUID) {
		t.Helper()
		m := who.Do("POST", "/api/v1/books/bulk/"+word, map[string]any{"bookIds": append([]uuid.UUID{}, ids...)}).Want(200).Map()
		want := fmt.Sprintf("%v books are marked as %s", count, word)
		if count == 1 {
			want = "1 book is marked as " + word
		}
		if m["count"] != count || m["message"] != want {
			t.Errorf("%s: %v, want %v", word, m, count)
		}
	}
	me.Do("PUT", "/api/v1/books/"+books[0].String()+"/progress", `{"currentPage":2}`).Want(200)
	do(me, "read", 2, books[0], books[1], books[1], books[3], uuid.New())
	do(foreigner, "read", 0, books...)
	got := me.Do("GET", "/api/v1/books/"+books[0].String()+"/progress", nil).Want(200).Map()
	if got["completed"] != true || got["currentPage"] != 10.0 || got["completedAt"] == nil {
		t.Errorf("%v", got)
	}
	me.Do("GET", "/api/v1/books/"+books[2].String()+"/progress", nil).Want(204)
	if m := me.Do("GET", "/api/v1/progress", nil).Want(200).Map(); m["total"] != 2.0 {
		t.Errorf("%v", m)
	}
	do(me, "read", 1, books[1])
	if n := completions(t, s, books[1]); n != 1 {
		t.Errorf("read twice in a row: %d completions", n)
	}
	do(foreigner, "unread", 0, books...)
	do(me, "unread", 1, books[1], books[2])
	do(me, "unread", 0, books[1])
	do(me, "unread", 0)
	me.Do("GET", "/api/v1/books/"+books[0].String()+"/progress", nil).Want(200)
	me.Do("GET", "/api/v1/books/"+books[1].String()+"/progress", nil).Want(204)

	// The progress in a book whose file is gone returns with the file; meanwhile it is hidden.
	gone := func(word string) {
		t.Helper()
		if _, err := s.DB.Owner.Pool().Exec(context.Background(), "update book set deleted_at = "+word+" where id = $1", books[0]); err != nil {
			t.Fatal(err)
		}
	}
	gone("now()")
	do(me, "unread", 0, books[0])
	if n, err := progress.UnreadSeries(callerContext(me), s.DB.App, series); err != nil || n != 0 {
		t.Errorf("unread series: %d, %v", n, err)
	}
	if m := me.Do("GET", "/api/v1/progress", nil).Want(200).Map(); m["total"] != 0.0 || len(m["data"].([]any)) != 0 {
		t.Errorf("progress in a book that is gone: %v", m)
	}
	gone("null")
	me.Do("GET", "/api/v1/books/"+books[0].String()+"/progress", nil).Want(200)
	if m := me.Do("GET", "/api/v1/progress", nil).Want(200).Map(); m["total"] != 1.0 || len(m["data"].([]any)) != 1 {
		t.Errorf("progress in a book that is back: %v", m)
	}

	many := make([]uuid.UUID, 1001)
	for _, word := range []string{"read", "unread"} {
		path := "/api/v1/books/bulk/" + word
		for _, body := range []any{map[string]any{"bookIds": many}, `{}`, `{"bookIds":null}`, `{"bookIds":"` + books[0].String() + `"}`} {
			if m := me.Do("POST", path, body).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "bookIds" {
				t.Errorf("%v", m)
			}
		}
		wrong := map[string]any{"bookIds": []string{books[0].String(), "x"}}
		if m := me.Do("POST", path, wrong).Want(400).Map(); m["details"].([]any)[0].(map[string]any)["field"] != "bookIds[1]" {
			t.Errorf("the error does not name the id: %v", m)
		}
		me.Do("POST", path, map[string]any{"book_ids": many[:1000]}).Want(200)
		s.Key(t, me, auth.SeriesRead).Do("POST", path, map[string]any{"bookIds": many[:1]}).Want(403)
		s.Anonymous(t, "one").Do("POST", path, map[string]any{"bookIds": many[:1]}).Want(401)
	}
}
