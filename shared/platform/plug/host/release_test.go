package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/platform/plug"
	"github.com/longbox/longbox/shared/testkit/pluginkit"
)

func TestWhatIsKnownOfReleases(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	_, args, err := pluginkit.Command("releases")
	if err != nil {
		t.Fatal(err)
	}
	announcing := start()
	announcing.Args, announcing.ID = args, "announcing"
	ask := func(s *plug.Start, known *plug.Releases, all asks) (told []string, said *plug.ReleaseChanges) {
		t.Helper()
		params, err := json.Marshal(map[string]any{"calls": all})
		if err != nil {
			t.Fatal(err)
		}
		a := h.Do(t.Context(), plug.Call{Start: s, Method: "test/calls", Params: params, Known: &plug.Known{Releases: known}, Timeout: 30 * time.Second})
		if a.Fault != nil {
			t.Fatal(a.Fault)
		}
		var raw []json.RawMessage
		if err := json.Unmarshal(a.Result, &raw); err != nil {
			t.Fatal(err)
		}
		for _, r := range raw {
			told = append(told, string(r))
		}
		return told, a.Changes.Releases
	}
	in := func(more map[string]any) map[string]any {
		out := map[string]any{"sourceId": "s"}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	candidate := func(external string) map[string]any {
		return in(map[string]any{"candidate": map[string]any{"externalReleaseId": external}})
	}
	etag := "old"
	known := &plug.Releases{Source: "s", ETag: &etag, Tracked: []plug.Tracked{{SeriesID: "1", Aliases: []string{"x"}}, {SeriesID: "2"}, {SeriesID: "3"}}, Recorded: map[string]string{plug.Key("r"): "7"}, Sources: []string{"a", "b"}}
	told, said := ask(announcing, known, asks{
		call("releases/list_tracked", in(map[string]any{"limit": 2})), call("releases/list_tracked", in(map[string]any{"offset": 2})), call("releases/list_tracked", in(map[string]any{"limit": 1001})),
		call("releases/count_tracked", nil), call("releases/count_tracked", map[string]any{"sourceId": "other"}), call("releases/source_state/get", in(nil)),
		call("releases/source_state/set", in(map[string]any{"etag": "new"})), call("releases/source_state/get", in(nil)), call("releases/source_state/set", in(nil)),
		call("releases/record", candidate("r")), call("releases/record", candidate("n")), call("releases/record", candidate("n")), call("releases/record", candidate("")),
		call("releases/report_progress", in(map[string]any{"current": 1})), call("releases/register_sources", map[string]any{"sources": []any{map[string]any{"sourceKey": "b", "kind": "api-feed"}, map[string]any{"sourceKey": "c", "kind": "api-feed"}}}),
		call("releases/register_sources", map[string]any{"sources": []any{map[string]any{"sourceKey": "b", "kind": "smell"}}}), call("releases/record", "text")})
	for i, want := range []string{`{"nextOffset":2,"tracked":[{"seriesId":"1","aliases":["x"]},{"seriesId":"2"}]}`, `{"tracked":[{"seriesId":"3"}]}`, "limit must", `{"count":3}`, "sourceId must", `{"etag":"old"}`,
		`{"success":true}`, `{"etag":"new"}`, "etag must", `{"deduped":true,"ledgerId":"7"}`, `"deduped":false`, `"deduped":true`, "externalReleaseId", `"success":true`, `{"pruned":1,"registered":2}`, "kind", "-32602"} {
		if !strings.Contains(told[i], want) {
			t.Errorf("%d: %s, want %s", i, told[i], want)
		}
	}
	if said == nil || len(said.Recorded) != 1 || said.Recorded[0].ID == "" || *said.ETag != "new" || len(said.Sources) != 2 {
		t.Errorf("%+v", said)
	}
	// What is known by its torrent is known in its series, whatever it is called.
	torrent := func(external, series, info string) map[string]any {
		return in(map[string]any{"candidate": map[string]any{"externalReleaseId": external, "infoHash": info, "seriesMatch": map[string]any{"codexSeriesId": series, "confidence": 1}}})
	}
	const one, two = "0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002"
	told, said = ask(announcing, &plug.Releases{Source: "s", Tracked: []plug.Tracked{{SeriesID: one}}, Torrents: map[string]string{one + "/abc": "8"}}, asks{call("releases/record", torrent("a", one, " ABC")),
		call("releases/record", torrent("b", two, "abc")), call("releases/record", torrent("c", one, ""))})
	if !strings.Contains(told[0], `{"deduped":true,"ledgerId":"8"}`) || len(said.Recorded) != 2 || said.Reached != one || !strings.Contains(told[1], `"deduped":false,"ledgerId":"`+said.Recorded[0].ID) ||
		!strings.Contains(told[2], `"deduped":false,"ledgerId":"`+said.Recorded[1].ID) {
		t.Errorf("%v, %+v", told, said)
	}
	// There is a bound.
	all := asks{}
	for _, id := range []string{"a", "b", "c"} {
		all = append(all, call("releases/record", in(map[string]any{"candidate": map[string]any{"externalReleaseId": id, "metadata": strings.Repeat("x", 900<<10)}})))
	}
	told, said = ask(announcing, &plug.Releases{Source: "s"}, all)
	if len(said.Recorded) != 2 || !strings.Contains(told[1], "deduped") || !strings.Contains(told[2], "no more than") {
		t.Errorf("%.200v", told)
	}
	// A page of series ends where it is large, and the next one goes on there.
	var many []plug.Tracked
	for i := range 20 {
		many = append(many, plug.Tracked{SeriesID: fmt.Sprint(i), Aliases: []string{strings.Repeat("x", 60<<10)}})
	}
	many = append(many, plug.Tracked{SeriesID: "20", Aliases: []string{strings.Repeat("x", 500<<10)}}, plug.Tracked{SeriesID: "21"})
	seen := 0
	for offset, pages := 0, 0; pages < 30; pages++ {
		told, _ = ask(announcing, &plug.Releases{Source: "s", Tracked: many}, asks{call("releases/list_tracked", in(map[string]any{"limit": 1000, "offset": offset}))})
		var answer struct {
			Result struct {
				Tracked    []plug.Tracked
				NextOffset *int
			}
		}
		if err := json.Unmarshal([]byte(told[0]), &answer); err != nil {
			t.Fatalf("%.100s: %v", told[0], err)
		}
		page := answer.Result
		if len(page.Tracked) == 0 || len(told[0]) > 300<<10 && len(page.Tracked) > 1 || page.Tracked[0].SeriesID != fmt.Sprint(seen) {
			t.Fatalf("page %d: %d series, %d bytes", pages, len(page.Tracked), len(told[0]))
		}
		seen += len(page.Tracked)
		if page.NextOffset == nil {
			break
		}
		offset = *page.NextOffset
	}
	if seen != len(many) {
		t.Errorf("%d series", seen)
	}
	// One that is not polled may only name its sources, and one that announces nothing not even that.
	name := call("releases/register_sources", map[string]any{"sources": []any{}})
	told, said = ask(announcing, &plug.Releases{}, asks{call("releases/list_tracked", nil), name})
	if !strings.Contains(told[0], "sourceId must") || !strings.Contains(told[1], `"registered":0`) || said == nil || said.Sources == nil {
		t.Errorf("%v, %+v", told, said)
	}
	told, said = ask(start(), &plug.Releases{Source: "s"}, asks{call("releases/list_tracked", nil), name})
	if !strings.Contains(told[0], "-32601") || !strings.Contains(told[1], "-32601") || said != nil {
		t.Errorf("%v, %+v", told, said)
	}
}

// Requests that a plugin sends right after initialize are answered by the call that started it.
func TestEarlyRequests(t *testing.T) {
	t.Parallel()
	h, start := newHost(t, nil)
	s := start()
	_, args, err := pluginkit.Command("releases")
	if err != nil {
		t.Fatal(err)
	}
	s.Args = args
	s.Init = map[string]any{"config": map[string]any{"early": map[string]any{"sources": []any{map[string]any{"sourceKey": "a", "kind": "api-feed"}}}}}
	a := h.Do(t.Context(), plug.Call{Start: s, Method: "ping", Known: &plug.Known{Releases: &plug.Releases{}}, Timeout: 30 * time.Second})
	if a.Fault != nil || a.Changes.Releases == nil || len(a.Changes.Releases.Sources) != 1 {
		t.Errorf("%+v %+v", a.Fault, a.Changes)
	}
}
