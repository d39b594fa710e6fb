package plugin

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
)

func number(n float64) *float64 { return &n }

// shelf creates books: v3 is volume 3, c7.5 chapter 7.5, - neither; * marks a read one, + a started one.
func shelf(all ...string) (out []readBook) {
	yes, no, page, at := true, false, int32(4), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, s := range all {
		b := readBook{ID: uuid.UUID{15: byte(i + 1)}}
		switch s[len(s)-1] {
		case '*':
			b.Completed, b.Ended, b.Started, b.Updated = &yes, &at, &at, &at
			s = s[:len(s)-1]
		case '+':
			b.Completed, b.Page, b.Started, b.Updated = &no, &page, &at, &at
			s = s[:len(s)-1]
		}
		var n float64
		if _, err := fmt.Sscanf(s[1:], "%g", &n); err == nil && s[0] == 'v' {
			b.Volume = &n
		} else if err == nil && s[0] == 'c' {
			b.Chapter = &n
		}
		out = append(out, b)
	}
	return out
}

func TestWhatAServiceIsTold(t *testing.T) {
	t.Parallel()
	all := hostConfig{IncludeCompleted: true, IncludeInProgress: true, SyncRatings: true}
	partial, noneDone, noneOpen, unrated := all, all, all, all
	partial.CountPartialProgress, noneDone.IncludeCompleted, noneOpen.IncludeInProgress, unrated.SyncRatings = true, false, false, false
	ongoing, ended := "ongoing", "ended"
	for name, c := range map[string]struct {
		s     readSeries
		books []readBook
		host  hostConfig
		want  string // without times and id
	}{
		"nothing begun":           {readSeries{}, shelf("v1", "v2"), all, "null"},
		"volumes":                 {readSeries{TotalVolumes: number(9)}, shelf("v1*", "v2*", "v3+", "v4"), all, `{"progress":{"maxVolume":2,"totalVolumes":9,"volumes":2},"status":"reading"}`},
		"begun ones count":        {readSeries{}, shelf("v1*", "v2+", "v3"), partial, `{"progress":{"maxVolume":2,"volumes":2},"status":"reading"}`},
		"chapters":                {readSeries{}, shelf("c1*", "c1.5*", "c2"), all, `{"progress":{"chapters":1,"maxChapter":1.5},"status":"reading"}`},
		"a gap":                   {readSeries{}, shelf("v1*", "v2", "v3*"), all, `{"progress":{"maxVolume":3,"volumes":1},"status":"reading"}`},
		"the last one alone":      {readSeries{}, shelf("v1", "v3*"), all, `{"progress":{"maxVolume":3},"status":"reading"}`},
		"chapters of volumes":     {readSeries{Status: &ongoing, TotalVolumes: number(1)}, shelf("c1*", "c2*"), all, `{"progress":{"chapters":2,"maxChapter":2,"totalVolumes":1},"status":"reading"}`},
		"all of an ended series":  {readSeries{Status: &ended}, shelf("v1*", "v2*"), all, `{"progress":{"maxVolume":2,"volumes":2},"status":"completed"}`},
		"all so far":              {readSeries{Status: &ongoing}, shelf("v1*", "v2*"), all, `{"progress":{"maxVolume":2,"volumes":2},"status":"reading"}`},
		"all that there will be":  {readSeries{Status: &ongoing, TotalVolumes: number(2)}, shelf("v1*", "v2*"), all, `{"progress":{"maxVolume":2,"totalVolumes":2,"volumes":2},"status":"completed"}`},
		"all that one has":        {readSeries{TotalVolumes: number(9)}, shelf("v1*", "v2*"), all, `{"progress":{"maxVolume":2,"totalVolumes":9,"volumes":2},"status":"reading"}`},
		"without numbers":         {readSeries{}, shelf("-*", "-*", "-"), all, `{"progress":{"volumes":2},"status":"reading"}`},
		"no completed ones":       {readSeries{}, shelf("v1*"), noneDone, "null"},
		"none in progress":        {readSeries{}, shelf("v1*", "v2"), noneOpen, "null"},
		"with what one thinks":    {readSeries{Rating: number(80)}, shelf("v1*", "v2"), all, `{"progress":{"maxVolume":1,"volumes":1},"score":80,"status":"reading"}`},
		"without what one thinks": {readSeries{Rating: number(80)}, shelf("v1*", "v2"), unrated, `{"progress":{"maxVolume":1,"volumes":1},"status":"reading"}`},
	} {
		e := c.s.entry(c.books, c.host, false)
		var m map[string]any
		data, _ := json.Marshal(e)
		_ = json.Unmarshal(data, &m)
		if e != nil && (m["startedAt"] == nil || m["latestUpdatedAt"] == nil || (m["completedAt"] != nil) != (e.Status == completed)) {
			t.Errorf("%s: %s", name, data)
		}
		for _, k := range []string{"startedAt", "completedAt", "latestUpdatedAt", "externalId"} {
			delete(m, k)
		}
		if data, _ = json.Marshal(m); string(data) != c.want {
			t.Errorf("%s: %s", name, data)
		}
	}
	e := (&readSeries{}).entry(shelf("v1*", "c2.5+", "v3"), all, true)
	if data, _ := json.Marshal(e.Progress.Books); string(data) != `[{"volume":1,"completed":true},{"chapter":2.5,"completed":false,"currentPage":4}]` {
		t.Errorf("%s", data)
	}
}

func TestWhatAServiceSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e     heardEntry
		books []readBook
		want  string // numbers of the books that become read
	}{
		"completed":               {heardEntry{Status: completed}, shelf("v1", "v2*", "c3"), "[1 3]"},
		"nothing said":            {heardEntry{Status: reading}, shelf("v1", "v2"), "[]"},
		"volumes":                 {heardEntry{Status: reading, Progress: &heardProgress{Volumes: number(2)}}, shelf("v1*", "v2+", "v3", "c1"), "[2]"},
		"chapters":                {heardEntry{Status: "dropped", Progress: &heardProgress{Chapters: number(2)}}, shelf("c1", "c2", "c2.5", "v1"), "[1 2]"},
		"both":                    {heardEntry{Progress: &heardProgress{Chapters: number(20), Volumes: number(1)}}, shelf("v1", "v2", "c19", "c21"), "[1 3]"},
		"none has a number":       {heardEntry{Progress: &heardProgress{Volumes: number(2)}}, shelf("-", "-", "-"), "[1 2]"},
		"none has, chapters":      {heardEntry{Progress: &heardProgress{Chapters: number(1)}}, shelf("-", "-"), "[1]"},
		"one without among some":  {heardEntry{Progress: &heardProgress{Volumes: number(5)}}, shelf("-", "v2"), "[2]"},
		"books":                   {heardEntry{Progress: &heardProgress{Books: heardBooks(`[{"volume": 2, "completed": true}, {"volume": 3}, {"completed": true}]`)}}, shelf("v1", "v2", "v3", "-"), "[2]"},
		"counted by volumes":      {heardEntry{Progress: &heardProgress{Volumes: number(2), Chapters: number(0)}}, []readBook{{ID: uuid.UUID{15: 1}, Volume: number(2), Chapter: number(9)}}, "[1]"},
		"less than here":          {heardEntry{Progress: &heardProgress{Volumes: number(0)}}, shelf("v1*", "v2*"), "[]"},
		"nothing that is a count": {heardEntry{Progress: &heardProgress{Volumes: number(-1)}}, shelf("v1"), "[]"},
	} {
		got := []int{}
		for _, id := range c.e.unread(c.books, hostConfig{}) {
			got = append(got, int(id[15]))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func heardBooks(list string) (out []struct {
	Volume    *float64 `json:"volume"`
	Chapter   *float64 `json:"chapter"`
	Completed bool     `json:"completed"`
}) {
	if err := json.Unmarshal([]byte(list), &out); err != nil {
		panic(err)
	}
	return out
}

// Progress that was pushed to a service does not come back as more, and does not lower what the service has.
func TestServicesAreAPlaceToComeBackFrom(t *testing.T) {
	t.Parallel()
	all := hostConfig{IncludeCompleted: true, IncludeInProgress: true}
	partial := all
	partial.CountPartialProgress = true
	for name, c := range map[string]struct {
		books []readBook
		host  hostConfig
	}{
		"the last volume alone": {shelf("v1", "v2", "v10*"), all},
		"a gap":                 {shelf("v1*", "v2", "v3*"), all},
		"the last chapter":      {shelf("c1", "c2", "c3.5*"), all},
		"begun ones count":      {shelf("v1*", "v2+", "v3"), partial},
		"without numbers":       {shelf("-", "-*"), all},
	} {
		told := (&readSeries{}).entry(c.books, c.host, true)
		data, _ := json.Marshal(told)
		var back heardEntry
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if unread := back.unread(c.books, c.host); len(unread) > 0 || back.ahead(told) {
			t.Errorf("%s: %s makes %d books read", name, data, len(unread))
		}
	}
	told := (&readSeries{}).entry(shelf("v1*", "v2*", "v3"), all, false)
	for status, ahead := range map[string]bool{reading: false, "plan_to_read": false, "": false, "dropped": true, "on_hold": true, completed: true} {
		if e := (heardEntry{Status: status, Progress: &heardProgress{Volumes: number(1)}}); e.ahead(told) != ahead {
			t.Error(status)
		}
	}
	if e := (heardEntry{Status: reading, Progress: &heardProgress{Volumes: number(3)}}); !e.ahead(told) {
		t.Error("it is told less than it knows")
	}
}
