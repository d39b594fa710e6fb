package series_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/longbox/longbox/shared/testkit"
)

// queued returns a tenant's tasks in order: type, number of series in the params, and whether it is for a library.
func queued(t *testing.T, s *testkit.Server, tenant uuid.UUID) string {
	t.Helper()
	var out string
	if err := s.DB.Owner.Pool().QueryRow(context.Background(), `select coalesce(string_agg(concat_ws(' ', type, jsonb_array_length(params->'seriesIds') || ' series',
		  case when params ? 'onlyNew' then 'new' end, case when series_id is not null then 'of a series' when library_id is not null then 'of a library' end), ', ' order by created_at, type, params), '')
		from task where tenant_id = $1`, tenant).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCommandsOnSeveral(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	maintainer := s.User(t, "one", "maintainer")
	comics := newLibrary(t, s, s.One, "comics")
	old, _ := newSeries(t, s, s.One, comics, "Old", 1, 2)
	fresh, books := newSeries(t, s, s.One, newLibrary(t, s, s.One, "manga"), "Fresh", 2, 2)
	exec(t, s, "update book set analyzed = false where id = $1", books[0])
	library := newLibrary(t, s, s.Two, "comics")
	foreign, _ := newSeries(t, s, s.Two, library, "Foreign", 1, 1)
	all := map[string]any{"seriesIds": []uuid.UUID{old, fresh, foreign, uuid.New()}}
	with := func(key string, value any) map[string]any {
		return map[string]any{"seriesIds": all["seriesIds"], key: value}
	}
	for _, c := range []struct {
		path  string
		body  any
		count any // tasksEnqueued; nil if one task is named
		want  string
		again bool // a repeated request names the same task
	}{
		{"/series/bulk/analyze", all, 1.0, "analyze_series new of a series", false},
		{"/series/bulk/analyze", with("force", true), 2.0, "analyze_series of a series, analyze_series of a series", false},
		{"/series/bulk/renumber", all, nil, "renumber_series 2 series", true},
		{"/series/bulk/titles/reprocess", all, nil, "reprocess_series_titles 2 series", true},
		{"/series/titles/reprocess", with("libraryId", comics), nil, "reprocess_series_titles 2 series", true},
		{"/series/titles/reprocess", map[string]any{"libraryId": comics}, nil, "reprocess_series_titles of a library", true},
		{"/libraries/" + comics.String() + "/analyze", nil, nil, "analyze_library of a library", true},
		{"/libraries/" + comics.String() + "/analyze-unanalyzed", nil, nil, "analyze_library new of a library", true},
	} {
		exec(t, s, "delete from task")
		got := maintainer.Do("POST", "/api/v1"+c.path, c.body).Want(200).Map()
		if c.count != nil && got["tasksEnqueued"] != c.count || c.count == nil && got["taskId"] == nil || got["message"] == "" {
			t.Errorf("%s: %v", c.path, got)
		}
		if got := queued(t, s, s.One); got != c.want {
			t.Errorf("%s %v: tasks %s, want %s", c.path, c.body, got, c.want)
		}
		again := maintainer.Do("POST", "/api/v1"+c.path, c.body).Want(200).Map()
		if c.count != nil && again["tasksEnqueued"] != 0.0 || c.again && again["taskId"] != got["taskId"] {
			t.Errorf("%s asked twice: %v, %v", c.path, got, again)
		}
		if got := queued(t, s, s.Two); got != "" {
			t.Errorf("%s: another tenant's tasks %s", c.path, got)
		}
	}
	// A dry run changes nothing.
	for _, path := range []string{"/series/bulk/titles/reprocess", "/series/titles/reprocess"} {
		exec(t, s, "delete from task")
		maintainer.Do("POST", "/api/v1"+path, with("dryRun", true)).Want(200)
		var tried bool
		if err := s.DB.Owner.Pool().QueryRow(t.Context(), "select params ->> 'dryRun' = 'true' from task").Scan(&tried); err != nil || !tried {
			t.Errorf("%s: tried %v, %v", path, tried, err)
		}
	}
	for _, path := range []string{"/libraries/" + library.String() + "/analyze", "/libraries/" + uuid.NewString() + "/analyze-unanalyzed"} {
		maintainer.Do("POST", "/api/v1"+path, nil).Want(404)
	}
	maintainer.Do("POST", "/api/v1/series/titles/reprocess", map[string]any{"libraryId": library}).Want(404)
}

func TestCommandsOnSeveralRefuse(t *testing.T) {
	t.Parallel()
	s := testkit.Serve(t, routes)
	maintainer, reader := s.User(t, "one", "maintainer"), s.User(t, "one", "reader")
	many := `{"seriesIds":[` + strings.Repeat(`"`+uuid.NewString()+`",`, 500) + `"` + uuid.NewString() + `"]}`
	for _, path := range []string{"/series/bulk/analyze", "/series/bulk/renumber", "/series/bulk/titles/reprocess", "/series/titles/reprocess"} {
		for _, body := range []string{`{}`, `{"seriesIds":[]}`, `{"seriesIds":null}`, many} {
			m := maintainer.Do("POST", "/api/v1"+path, body).Want(400).Map()
			if details, _ := m["details"].([]any); len(details) == 0 || details[0].(map[string]any)["field"] != "seriesIds" {
				t.Errorf("%s %.40s: %v", path, body, m)
			}
		}
		reader.Do("POST", "/api/v1"+path, `{"seriesIds":["`+uuid.NewString()+`"]}`).Want(403)
		s.Anonymous(t, "one").Do("POST", "/api/v1"+path, `{"seriesIds":["`+uuid.NewString()+`"]}`).Want(401)
	}
	library := newLibrary(t, s, s.One, "comics")
	for _, what := range []string{"analyze", "analyze-unanalyzed"} {
		reader.Do("POST", "/api/v1/libraries/"+library.String()+"/"+what, nil).Want(403)
	}
}
