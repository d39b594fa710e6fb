package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/domain/series"
	"github.com/longbox/longbox/shared/platform/plug"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	about := map[string]any{"metadata": map[string]any{"title": "Tom & <Jerry>", "year": 1999.0}, "externalIds": map[string]any{"plugin:test": map[string]any{"id": "7"}}}
	if got, err := expand("  {{metadata.title}} \n ({{metadata.year}}) {{externalIds.[plugin:test].id}} ", about); err != nil || got != "Tom & <Jerry> (1999) 7" {
		t.Errorf("%q, %v", got, err)
	}
}

// The context of a book that is not analysed yet has all fields: its own are null, and those that only series have are
// those of its series.
func TestContextOfBook(t *testing.T) {
	t.Parallel()
	s := &series.Details{Metadata: series.Metadata{Title: "S", Year: new(int32(1999)), Status: new("ended"), Locks: series.Locks{"title": true, "status": true}}}
	s.ExternalIDs = []reference.ExternalID{{Source: "plugin:test", ExternalID: "7"}}
	d := &aBook{Details: &book.Details{Book: book.Book{Title: "B", Number: new(1.5), FileFormat: "cbz", PageCount: 3}}}
	about, err := contextOfBook(d, s)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"type": "book", "fileFormat": "cbz", "pageCount": "3", "metadata.title": "B", "metadata.number": "1.5", "metadata.year": "", "metadata.titleLock": "false",
		"metadata.status": "ended", "metadata.statusLock": "true", "externalIds.count": "0", "series.type": "series", "series.metadata.title": "S", "series.metadata.titleLock": "true",
		"series.metadata.year": "1999", "series.externalIds.plugin:test.id": "7", "series.external_ids.count": "1"} {
		value, _ := json.Marshal(want)
		no, err := failed(about, json.RawMessage(`{"rules":[{"field":"`+field+`","operator":"not_equals","value":`+string(value)+`}]}`))
		if err != nil || no == nil {
			t.Errorf("%s is not %q, %v", field, want, err)
		}
	}
}

// Of a list of which nothing can be used, the reason is told, as of every other field; of one of which something can,
// none.
func TestReasonsForLists(t *testing.T) {
	t.Parallel()
	reasons := func(raw string) (out string) {
		ofSeries, ofBook := &seriesEdit{Details: &series.Details{}}, &bookEdit{aBook: &aBook{Details: &book.Details{}}}
		if err := errors.Join(json.Unmarshal([]byte(raw), &ofSeries.said), json.Unmarshal([]byte(raw), &ofBook.said)); err != nil {
			t.Fatal(err)
		}
		for _, f := range append(ofSeries.propose(&Plugin{}), ofBook.propose(&Plugin{})...) {
			if f.Status == notProvided && f.Reason != nil {
				out += " " + f.Field
			}
		}
		return out
	}
	if got := reasons(`{"genres":["\u0007"],"tags":["\u0007"],"authors":[{"name":"\u0007"}],"externalLinks":[{"url":"https://example.org"},{"url":"javascript:a","label":"A"}],
		"externalRatings":[{"score":101,"source":"a"}],"subjects":["\u0007"],"awards":[{"name":"\u0007"}]}`); got != " genres tags authors externalLinks externalRatings subjects genres tags awards externalLinks" {
		t.Errorf("reasons for%s", got)
	}
	if got := reasons(`{"genres":["\u0007","Drama"],"tags":[],"externalLinks":[{"url":"https://example.org","label":"A"},{"url":"javascript:a","label":"B"}]}`); got != "" {
		t.Errorf("reasons for%s", got)
	}
}

// Manifests of several versions of the protocol are understood.
func TestManifests(t *testing.T) {
	t.Parallel()
	var m Manifest
	if err := json.Unmarshal([]byte(`{"name":"a","version":"1","protocolVersion":"1.0","capabilities":{"metadataProvider":["series"],"releaseSource":{"kinds":["rss"]},"userReadSync":true},
		"oauth":{"authorizationUrl":"https://a","tokenUrl":"https://b"},"searchURITemplate":"https://a/{title}","requiredCredentials":[{"key":"k","label":"K","type":"password"}]}`), &m); err != nil {
		t.Fatal(err)
	}
	if !m.Capabilities.ReleaseSource || !m.Capabilities.UserReadSync || m.OAuth == nil || !m.OAuth.PKCE || *m.SearchURITemplate != "https://a/{title}" || m.ContentTypes[0] != "series" ||
		m.RequiredCredentials[0].CredentialType != "password" {
		t.Errorf("%+v", m)
	}
	// A stored manifest is decoded to the same.
	data, _ := json.Marshal(m)
	var again Manifest
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if second, _ := json.Marshal(again); string(second) != string(data) {
		t.Errorf("%s\n%s", data, second)
	}
	var none Manifest
	if err := json.Unmarshal([]byte(`{"capabilities":{}}`), &none); err != nil || none.OAuth != nil || none.Capabilities.ReleaseSource {
		t.Errorf("%+v, %v", none, err)
	}
	if data, _ := json.Marshal(none); strings.Contains(string(data), `"scopes":null`) || strings.Contains(string(data), `"requiredCredentials":null`) {
		t.Errorf("%s", data)
	}
}

// Addresses in a manifest that a browser cannot open safely are dropped: administrators see them as links.
func TestAddressesOfManifests(t *testing.T) {
	t.Parallel()
	for address, shown := range map[string]bool{"https://example.org/?q=<title>": true, "http://example.org/{title}": true,
		"javascript:alert(1)": false, " javascript:alert(1)": false, "data:text/html,x": false, "//example.org": false, "": false} {
		var m Manifest
		data, _ := json.Marshal(map[string]string{"homepage": address, "searchURITemplate": address})
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
		for _, got := range []*string{m.Homepage, m.SearchURITemplate} {
			if (got != nil) != shown || shown && *got != address {
				t.Errorf("%q: %v", address, got)
			}
		}
	}
}

// Only the plugin's own errors count as failures.
func TestWhoIsToBlame(t *testing.T) {
	t.Parallel()
	fault := func(code string, rpc int) *plug.Fault { return &plug.Fault{Code: code, RPC: rpc} }
	for name, c := range map[string]struct {
		asked asked
		want  bool
	}{
		"none":                      {asked{}, false},
		"it ended":                  {asked{fault: fault(plug.ProcessEnded, 0)}, true},
		"it cannot be started":      {asked{fault: fault(plug.SpawnFailed, 0)}, true},
		"no manifest":               {asked{fault: fault(plug.InitFailed, 0)}, true},
		"too slow":                  {asked{fault: fault(plug.TimedOut, 0)}, true},
		"too slow for one in haste": {asked{fault: fault(plug.TimedOut, 0), hurried: true}, false},
		"an error":                  {asked{fault: fault(plug.RPCFailed, -32004)}, true},
		"of parameters of somebody": {asked{fault: fault(plug.RPCFailed, -32004), blameless: true}, false},
		"it ended by these":         {asked{fault: fault(plug.ProcessEnded, 0), blameless: true}, true},
		"not known":                 {asked{fault: fault(plug.RPCFailed, notFound)}, false},
		"not offered":               {asked{fault: fault(plug.RPCFailed, methodNotFound)}, false},
		"no more requests":          {asked{fault: fault(plug.Limited, 0)}, false},
		"it was not asked":          {asked{fault: fault(plug.ProcessEnded, 0), unsent: true}, false},
		"nobody can be asked":       {asked{fault: fault(plug.Unavailable, 0)}, false},
		"the address of a picture":  {asked{fault: fault(plug.FetchFailed, 0)}, false},
	} {
		if got := c.asked.counts(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A timeout counts only if the plugin had the time that it may take: its own, or else most of what requests to the api
// have.
func TestShortTimeIsNoFailure(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"fault":{"code":"TIMEOUT"}}`) }))
	defer server.Close()
	r := &Runner{Client: plug.New(plug.Config{URL: server.URL, Token: "t0ken"})}
	for _, c := range []struct {
		own  *int32 // seconds
		left time.Duration
		want bool
	}{
		{nil, time.Hour, true},
		{nil, 28 * time.Second, true}, // in the cloud
		{nil, 20 * time.Second, false},
		{new(int32(10)), 20 * time.Second, true},
		{new(int32(60)), 40 * time.Second, false},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), c.left)
		got := r.ask(ctx, &runnable{Plugin: Plugin{RequestTimeoutSeconds: c.own}}, "ping", nil, nil)
		if got.fault == nil || got.fault.Code != plug.TimedOut || got.counts() != c.want {
			t.Errorf("%+v: %+v counts: %v", c, got.fault, got.counts())
		}
		cancel()
	}
}

// Texts below a name that suggests a secret are confidential, at any depth and in the user's config, too.
func TestConfidentialSettings(t *testing.T) {
	t.Parallel()
	p := &runnable{Plugin: Plugin{Config: json.RawMessage(`{"region":"jp","apiKey":"a","accounts":[{"name":"x","token":"b"},{"secrets":["c",{"of":"d"}],"n":1}]}`),
		Env: map[string]string{"API_KEY": "e", "LANG": "f"}},
		mine: &mine{Config: json.RawMessage(`{"shelf":"x","service":{"password":"g"}}`)}}
	got := p.confidential()
	if slices.Sort(got); strings.Join(got, "") != "abcdeg" {
		t.Errorf("%q", got)
	}
}

// A URL is filled with escaped values only, so that it leads where its template says.
func TestAddressesAreFilled(t *testing.T) {
	t.Parallel()
	config := map[string]any{"home": "https://example.org", "region": "a/b?c", "api_key": "s3cret", "authToken": "s3cret", "PASSWORD": "s3cret", "n": 4.0}
	for template, want := range map[string]string{"{config.home}/{externalId}": "https://example.org/{externalId}", "https://example.org/{config.region}": "https://example.org/a%2Fb%3Fc",
		"https://example.org/{config.n}?k={config.api_key}&t={config.authToken}&p={config.PASSWORD}": "https://example.org/4?k=&t=&p=", "{config.none}x": "x", "{config.api_key}x": "x"} {
		if got := filled(template, config); got != want {
			t.Errorf("%s: %s, want %s", template, got, want)
		}
	}
}
