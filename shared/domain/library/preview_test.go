package library_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const previewPath = path + "/preview-scan"

func TestPreview(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.listing = [][]string{
		{"DC/Batman/Batman 1.cbz", "DC/Batman/Batman 10.cbz", "DC/Batman/Batman 2.cbz", "DC/Batman/cover.jpg", "DC/Batman/.hidden.cbz"},
		{"DC/Batman/Batman 3.pdf", "DC/Batman/Batman 4.cbz", "DC/Batman/Batman 5.cbz", "Marvel/X-Men/x 1.cbz", "loose.cbz"},
	}
	me := f.User(t, "one", "maintainer")
	m := me.Do("POST", previewPath, `{"path":"/books/x","series_strategy":"publisher_hierarchy"}`).Want(200).Map()
	got := fmt.Sprint(m["totalFiles"], m["totalSeries"], m["truncated"])
	for _, one := range m["detectedSeries"].([]any) {
		s := one.(map[string]any)
		publisher := "-"
		if meta, ok := s["metadata"].(map[string]any); ok {
			publisher = fmt.Sprint(meta["publisher"])
		}
		got += fmt.Sprint("; ", s["name"], " ", s["path"], " ", s["bookCount"], " ", publisher, " ", len(s["sampleBooks"].([]any)))
	}
	want := "8 3 false; Batman DC/Batman 6 DC 5; loose loose.cbz 1 - 1; X-Men Marvel/X-Men 1 Marvel 1"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	m = me.Do("POST", previewPath, `{"path":"/books","seriesStrategy":"flat","seriesConfig":{"filenamePatterns":["^(\\w+)"]},"allowedFormats":["cbz"],
		"excludedPatterns":"X-Men","titlePreprocessingRules":[{"pattern":"Bat","replacement":"Cat"}],"bookStrategy":"series_name"}`).Want(200).Map()
	first := m["detectedSeries"].([]any)[0].(map[string]any)
	if first["name"] != "Catman" || first["path"] != nil || first["bookCount"] != 5.0 || m["totalFiles"] != 6.0 {
		t.Errorf("%v", m)
	}
	if got := first["sampleBooks"].([]any)[0]; got != "Catman v.01" {
		t.Errorf("sample %v", got)
	}
	m = me.Do("POST", previewPath, `{"path":"/books","bookStrategy":"filename"}`).Want(200).Map()
	if got := fmt.Sprint(m["detectedSeries"].([]any)[0].(map[string]any)["sampleBooks"]); got != "[Batman 1 Batman 2 Batman 3 Batman 4 Batman 5]" {
		t.Errorf("samples %s", got)
	}
	if list := me.Do("GET", path, nil).Want(200).Map(); list["total"] != 0.0 {
		t.Errorf("a preview stored something: %v", list)
	}
}

func TestPreviewIsBounded(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for page := range 25 {
		var keys []string
		for i := range 1000 {
			keys = append(keys, fmt.Sprintf("s%05d/b.cbz", page*1000+i))
		}
		f.listing = append(f.listing, keys)
	}
	m := f.User(t, "one", "maintainer").Do("POST", previewPath, `{"path":"/books"}`).Want(200).Map()
	if m["totalFiles"] != 20000.0 || m["totalSeries"] != 20000.0 || m["truncated"] != true || len(m["detectedSeries"].([]any)) != 1000 {
		t.Errorf("%v files, %v series, truncated %v", m["totalFiles"], m["totalSeries"], m["truncated"])
	}
}

// What an administrator must mend in the folders is no failure that passes, and what is left out is no complete
// preview.
func TestPreviewOfClosedFolders(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.listing = [][]string{{"b/1.cbz"}}
	me := f.User(t, "one", "maintainer")
	for folder, why := range map[string]string{
		"locked": "cannot be listed: check that Longbox may read the folder",
		"latin":  "has more than 100 folders that cannot be listed, among them caf\uFFFD/",
	} {
		r := me.Do("POST", previewPath, `{"path":"/books/`+folder+`"}`).Want(400)
		m := r.Map()
		if got := fieldsOf(m); !slices.Equal(got, []string{"path"}) || !strings.Contains(m["message"].(string), why) || r.Header.Get("Retry-After") != "" {
			t.Errorf("%s: %v: %v", folder, got, m["message"])
		}
	}
	for folder, truncated := range map[string]bool{"caf\uFFFD/": true, "caf\uFFFD/old/": false, ".cache/": false} {
		f.unlisted = []string{folder}
		m := me.Do("POST", previewPath, `{"path":"/books","excludedPatterns":"old"}`).Want(200).Map()
		if m["truncated"] != truncated || m["totalFiles"] != 1.0 {
			t.Errorf("%s: truncated %v, %v files", folder, m["truncated"], m["totalFiles"])
		}
	}
}

func TestPreviewRefuses(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	for _, c := range []struct{ body, field string }{
		{`{}`, "path"},
		{`{"path":"/elsewhere"}`, "path"},
		{`{"path":"/books/missing"}`, "path"},
		{`{"path":"/books","seriesStrategy":"x"}`, "seriesStrategy"},
		{`{"path":"/books","seriesStrategy":"custom"}`, "seriesConfig.pattern"},
		{`{"path":"/books","seriesStrategy":"custom","seriesConfig":{"pattern":"("}}`, "seriesConfig.pattern"},
		{`{"path":"/books","allowedFormats":["exe"]}`, "allowedFormats"},
		{`{"path":"/books","excludedPatterns":"[a"}`, "excludedPatterns"},
		{`{"path":"/books","titlePreprocessingRules":[{"pattern":"("}]}`, "titlePreprocessingRules[0].pattern"},
	} {
		m := me.Do("POST", previewPath, c.body).Want(400).Map()
		if got := fieldsOf(m); !slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, c.field) }) {
			t.Errorf("%s: details name %v: %v", c.body, got, m["message"])
		}
	}
	me.Do("POST", previewPath, `{"path":"/books/down"}`).Want(503)
	f.User(t, "one", "reader").Do("POST", previewPath, `{"path":"/books"}`).Want(403)
	f.Anonymous(t, "one").Do("POST", previewPath, `{"path":"/books"}`).Want(401)
}

// Every strategy is accepted with its configuration in either spelling, and returned in one.
func TestEveryStrategyIsAccepted(t *testing.T) {
	t.Parallel()
	f := serve(t)
	me := f.User(t, "one", "maintainer")
	for i, c := range []struct{ members, field, want string }{
		{`"seriesStrategy":"series_volume"`, "seriesConfig", "<nil>"},
		{`"seriesStrategy":"series_volume_chapter"`, "seriesConfig", "<nil>"},
		{`"seriesStrategy":"flat","seriesConfig":{"filename_patterns":["(x)"],"require_metadata":true}`, "seriesConfig", "map[filenamePatterns:[(x)] requireMetadata:true]"},
		{`"seriesStrategy":"publisher_hierarchy","series_config":{"skipDepth":2,"store_skipped_as":null}`, "seriesConfig", "map[skipDepth:2 storeSkippedAs:<nil>]"},
		{`"seriesStrategy":"calibre","seriesConfig":{"series_mode":"by_author"}`, "seriesConfig", "map[seriesMode:by_author]"},
		{`"seriesStrategy":"custom","seriesConfig":{"pattern":"(?P<series>.)"}`, "seriesConfig", "map[pattern:(?P<series>.)]"},
		{`"bookStrategy":"filename"`, "bookConfig", "<nil>"},
		{`"bookStrategy":"metadata_first"`, "bookConfig", "<nil>"},
		{`"bookStrategy":"smart","bookConfig":{"additional_generic_patterns":["^x$"]}`, "bookConfig", "map[additionalGenericPatterns:[^x$]]"},
		{`"bookStrategy":"series_name"`, "bookConfig", "<nil>"},
		{`"bookStrategy":"custom","book_config":{"pattern":"(?P<title>.)","title_template":"{title}"}`, "bookConfig", "map[pattern:(?P<title>.) titleTemplate:{title}]"},
		{`"numberStrategy":"metadata"`, "numberConfig", "<nil>"},
		{`"numberStrategy":"smart","numberConfig":{}`, "numberConfig", "map[]"},
		{`"allowedFormats":["cbz","cbr","cb7","cbt","epub","pdf"]`, "allowedFormats", "[CBZ CBR CB7 CBT EPUB PDF]"},
	} {
		l := me.Do("POST", path, fmt.Sprintf(`{"name":"n%d","path":"/books",%s}`, i, c.members)).Want(201).Map()
		if got := fmt.Sprint(l[c.field]); got != c.want {
			t.Errorf("%s: %s = %s, want %s", c.members, c.field, got, c.want)
		}
	}
}
