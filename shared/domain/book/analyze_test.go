package book_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// tasks returns the books of a tenant's tasks in order, marked with ! if force is set.
func tasks(t *testing.T, s *testkit.Server, tenant uuid.UUID) (out []string) {
	t.Helper()
	err := s.DB.Owner.Pool().QueryRow(context.Background(), `select coalesce(array_agg(b.title || case when (t.params->>'force')::boolean then '!' else '' end order by b.title), '{}')
		from task t join book b on b.id = t.book_id and t.library_id = b.library_id and t.series_id = b.series_id
		where t.tenant_id = $1 and t.type = 'analyze_book' and t.params->'bookIds' = jsonb_build_array(b.id)`, tenant).Scan(&out)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// mixed creates an analysed book, a new one, an unreadable one and one whose file is gone, in this order, and one of
// another tenant.
func mixed(t *testing.T, s *testkit.Server) (ids []uuid.UUID) {
	t.Helper()
	_, ids = series(t, s, s.One, library(t, s, s.One, "comics"), "A", 4)
	exec(t, s, "update book set analyzed = false where id = any($1)", ids[1:])
	exec(t, s, "update book set error_type = 'parser' where id = $1", ids[2])
	exec(t, s, "update book set deleted_at = now() where id = $1", ids[3])
	_, foreign := series(t, s, s.Two, library(t, s, s.Two, "comics"), "F", 1)
	exec(t, s, "update book set analyzed = false where id = $1", foreign[0])
	return append(ids, foreign...)
}

func TestAnalyzeNewBook(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	maintainer := s.User(t, "one", "maintainer")
	ids := mixed(t, s)
	at := func(id uuid.UUID) string { return "/api/v1/books/" + id.String() + "/analyze-unanalyzed" }
	first := maintainer.Do("POST", at(ids[1]), nil).Want(200).Map()
	for _, path := range []string{at(ids[1]), "/api/v1/books/" + ids[1].String() + "/analyze"} {
		if again := maintainer.Do("POST", path, nil).Want(200).Map(); again["taskId"] != first["taskId"] || again["message"] == "" {
			t.Errorf("asked twice: %v and %v", first, again)
		}
	}
	for i, want := range map[int]int{0: 400, 2: 400, 3: 404, 4: 404} {
		maintainer.Do("POST", at(ids[i]), nil).Want(want)
	}
	maintainer.Do("POST", at(uuid.New()), nil).Want(404)
	s.User(t, "one", "reader").Do("POST", at(ids[1]), nil).Want(403)
	if got := tasks(t, s, s.One); !slices.Equal(got, []string{"A 2!"}) {
		t.Errorf("tasks: %v", got)
	}
}

// Who asks to read a book again is not answered with a task that waits and would leave it out.
func TestForcedAnalysisOfAWaitingBook(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	maintainer := s.User(t, "one", "maintainer")
	id := mixed(t, s)[1]
	maintainer.Do("POST", "/api/v1/books/bulk/analyze", map[string]any{"bookIds": []uuid.UUID{id}}).Want(200)
	maintainer.Do("POST", "/api/v1/books/"+id.String()+"/analyze", nil).Want(200)
	if got := tasks(t, s, s.One); !slices.Equal(got, []string{"A 2!"}) {
		t.Errorf("tasks: %v", got)
	}
}

func TestAnalyzeSeveralBooks(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	maintainer := s.User(t, "one", "maintainer")
	ids := append(mixed(t, s), uuid.New())
	for _, c := range []struct {
		what  string
		force bool
		count float64
		tasks []string
	}{
		{"those that never were", false, 1, []string{"A 2"}},
		{"again: it waits", false, 0, []string{"A 2"}},
		{"all", true, 2, []string{"A 1!", "A 2!", "A 3!"}},
	} {
		got := maintainer.Do("POST", "/api/v1/books/bulk/analyze", map[string]any{"book_ids": append(ids, ids[0]), "force": c.force}).Want(200).Map()
		if got["tasksEnqueued"] != c.count || got["message"] == "" {
			t.Errorf("%s: %v", c.what, got)
		}
		if got := tasks(t, s, s.One); !slices.Equal(got, c.tasks) {
			t.Errorf("%s: tasks %v", c.what, got)
		}
	}
	if got := tasks(t, s, s.Two); len(got) != 0 {
		t.Errorf("another tenant's: %v", got)
	}
	for _, body := range []string{`{}`, `{"bookIds":[]}`, `{"bookIds":null}`, `{"bookIds":[` + strings.Repeat(`"`+uuid.NewString()+`",`, 500) + `"` + uuid.NewString() + `"]}`} {
		m := maintainer.Do("POST", "/api/v1/books/bulk/analyze", body).Want(400).Map()
		if details, _ := m["details"].([]any); len(details) == 0 || details[0].(map[string]any)["field"] != "bookIds" {
			t.Errorf("%.40s: %v", body, m)
		}
	}
	s.User(t, "one", "reader").Do("POST", "/api/v1/books/bulk/analyze", map[string]any{"bookIds": ids}).Want(403)
}
