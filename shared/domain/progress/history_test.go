package progress_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/domain/progress"
	"github.com/longbox/longbox/shared/platform/auth"
	"github.com/longbox/longbox/shared/testkit"
)

// Each completed reading is in the history; removed ones stay removed, and progress stays unchanged.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, progress.Routes)
	series, books := shelf(t, s, 2)
	r := reader{t, s.User(t, "one", "reader"), books[0]}
	book, whole := "/api/v1/books/"+books[0].String()+"/read-history", "/api/v1/series/"+series.String()+"/read-history"
	ends := func(path string) string {
		m := r.who.Do("GET", path, nil).Want(200).Map()
		out := fmt.Sprint(m["readCount"], " ", m["lastCompletedAt"])
		for _, e := range m["entries"].([]any) {
			e := e.(map[string]any)
			if (e["id"] == nil) != (path == whole) {
				t.Errorf("%s: id of an entry is %v", path, e["id"])
			}
			out += fmt.Sprint(" ", e["startedAt"], "-", e["completedAt"])
		}
		return out
	}
	want := func(when, ofBook, ofSeries string) {
		t.Helper()
		if got := ends(book); got != ofBook {
			t.Errorf("%s: book %s, want %s", when, got, ofBook)
		}
		if got := ends(whole); got != ofSeries {
			t.Errorf("%s: series %s, want %s", when, got, ofSeries)
		}
	}
	want("unread", "0 <nil>", "0 <nil>")
	r.tell(r.session("completed", 0, 10, nil), r.session("reset", 20, 20, nil), r.session("completed", 20, 30, nil), r.session("progress", 31, 32, session{"toPage": 2}))
	const first, second = "2024-05-01T00:00:00Z-2024-05-01T00:10:00Z", "2024-05-01T00:20:00Z-2024-05-01T00:30:00Z"
	want("one book of two", "2 2024-05-01T00:30:00Z "+second+" "+first, "0 <nil>")
	other := reader{t, r.who, books[1]}
	other.tell(other.session("completed", 40, 50, nil))
	want("both books", "2 2024-05-01T00:30:00Z "+second+" "+first, "1 2024-05-01T00:50:00Z 2024-05-01T00:00:00Z-2024-05-01T00:50:00Z")

	before := r.who.Do("GET", "/api/v1/books/"+books[0].String()+"/progress", nil).Want(200).Map()
	id := r.who.Do("GET", book, nil).Want(200).Map()["entries"].([]any)[0].(map[string]any)["id"].(string)
	foreign := s.User(t, "one", "reader")
	foreign.Do("DELETE", book+"/"+id, nil).Want(404)
	r.who.Do("DELETE", "/api/v1/books/"+books[1].String()+"/read-history/"+id, nil).Want(404)
	r.who.Do("DELETE", book+"/"+id, nil).Want(204)
	r.who.Do("DELETE", book+"/"+id, nil).Want(404)
	want("the second forgotten", "1 2024-05-01T00:10:00Z "+first, "1 2024-05-01T00:50:00Z 2024-05-01T00:00:00Z-2024-05-01T00:50:00Z")
	if after := r.who.Do("GET", "/api/v1/books/"+books[0].String()+"/progress", nil).Want(200).Map(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the progress was %v and is %v", before, after)
	}
	r.tell(r.session("completed", 33, 34, nil))
	want("its pass told of again", "1 2024-05-01T00:10:00Z "+first, "1 2024-05-01T00:50:00Z 2024-05-01T00:00:00Z-2024-05-01T00:50:00Z")

	r.who.Do("DELETE", whole, nil).Want(204)
	want("the series forgotten", "0 <nil>", "0 <nil>")
	r.tell(r.session("reset", 60, 60, nil), r.session("completed", 61, 62, nil))
	want("read again", "1 2024-05-01T01:02:00Z 2024-05-01T01:01:00Z-2024-05-01T01:02:00Z", "0 <nil>")
	r.who.Do("DELETE", book, nil).Want(204)
	want("the book forgotten", "0 <nil>", "0 <nil>")
	r.tell(r.session("reset", 70, 70, nil), r.session("completed", 71, 72, nil))
	foreign.Do("DELETE", "/api/v1/user/read-history", nil).Want(204)
	want("somebody else forgot", "1 2024-05-01T01:12:00Z 2024-05-01T01:11:00Z-2024-05-01T01:12:00Z", "0 <nil>")
	onlySeries := s.Key(t, r.who, auth.SeriesRead)
	onlySeries.Do("GET", whole, nil).Want(200)
	for _, path := range []string{book, whole, "/api/v1/user/read-history"} {
		onlySeries.Do("DELETE", path, nil).Want(403)
	}
	r.who.Do("DELETE", "/api/v1/user/read-history", nil).Want(204)
	want("all forgotten", "0 <nil>", "0 <nil>")

	r.tell(r.session("reset", 74, 74, nil), r.session("completed", 75, 76, nil))
	tag := uuid.New()
	s.DB.Exec(t, "insert into sharing_tag (tenant_id, id, name) values ($1, $2, 'some')", s.One, tag)
	s.DB.Exec(t, "insert into series_sharing_tag (tenant_id, series_id, sharing_tag_id) select tenant_id, series_id, $2 from book where id = $1", books[0], tag)
	s.DB.Exec(t, "insert into sharing_grant (tenant_id, id, sharing_tag_id, account_id, mode) values ($1, gen_random_uuid(), $2, $3, 'deny')", s.One, tag, r.who.ID)
	r.who.Do("GET", book, nil).Want(404)
	r.who.Do("DELETE", "/api/v1/user/read-history", nil).Want(204)
	s.DB.Exec(t, "delete from sharing_grant")
	want("forgotten while it was hidden", "0 <nil>", "0 <nil>")

	stranger := s.User(t, "two", "admin")
	for _, path := range []string{book, whole, "/api/v1/books/" + uuid.NewString() + "/read-history", "/api/v1/series/" + uuid.NewString() + "/read-history"} {
		stranger.Do("GET", path, nil).Want(404)
		stranger.Do("DELETE", path, nil).Want(404)
	}

	r.tell(r.session("reset", 80, 80, nil), r.session("completed", 81, 82, nil))
	id = r.who.Do("GET", book, nil).Want(200).Map()["entries"].([]any)[0].(map[string]any)["id"].(string)
	s.DB.Exec(t, "update book set deleted_at = now() where id = $1", books[0])
	r.who.Do("GET", book, nil).Want(404)
	r.who.Do("DELETE", book, nil).Want(404)
	r.who.Do("DELETE", book+"/"+id, nil).Want(404)
	s.DB.Exec(t, "update book set deleted_at = null where id = $1", books[0])
	want("found again: what answered 404 changed nothing", "1 2024-05-01T01:22:00Z 2024-05-01T01:21:00Z-2024-05-01T01:22:00Z", "0 <nil>")
}
