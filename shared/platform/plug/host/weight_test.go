package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/plug"
)

// Escaped characters count as they are sent: what was accepted can always be sent.
func TestRecordedCountsAsItIsSent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"<", ">&", "\u2028", "x"} {
		d := &desk{known: plug.Known{Releases: &plug.Releases{Source: "s"}}}
		taken := 0
		for _, id := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			params := `{"candidate":{"externalReleaseId":"` + id + `","metadata":"` + strings.Repeat(text, 200<<10/len(text)) + `"}}`
			if _, refused := d.record(json.RawMessage(params)); refused == nil {
				taken++
			}
		}
		sent, err := json.Marshal(d.changes)
		if err != nil || taken == 0 || taken == 26 || len(sent) > plug.MaxRecorded+4096 || len(sent) < plug.MaxRecorded/2-4096 {
			t.Errorf("%q: %d taken, %d bytes, %v", text, taken, len(sent), err)
		}
	}
	d := &desk{known: plug.Known{Releases: &plug.Releases{}}}
	sources := `{"sources":[{"sourceKey":"a","kind":"api-feed","config":"` + strings.Repeat("<", 100<<10) + `"}]}`
	if _, refused := d.registerSources(json.RawMessage(sources)); refused == nil {
		t.Error("sources of 600 KiB are taken")
	}
}

// The output and storage of a plugin are limited; everything within the limits is accepted.
func TestBoundsOfDesks(t *testing.T) {
	t.Parallel()
	said := func(format string, args ...any) json.RawMessage { return json.RawMessage(fmt.Sprintf(format, args...)) }
	fresh := func() *desk {
		return &desk{known: plug.Known{Storage: map[string]plug.Stored{}, Releases: &plug.Releases{Source: "s"}}}
	}
	sources := func(n int) json.RawMessage {
		return said(`{"sources":[%s]}`, strings.Join(slices.Repeat([]string{`{"sourceKey":"a","kind":"api-feed"}`}, n), ","))
	}
	text := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		do     func(d *desk, params json.RawMessage) (any, *rpcError)
		within json.RawMessage
		beyond []json.RawMessage
	}{
		"value": {(*desk).set, said(`{"key":"a","data":"%s"}`, text(plug.MaxValue-2)), []json.RawMessage{said(`{"key":"a","data":"%s"}`, text(plug.MaxValue-1))}},
		"end":   {(*desk).set, said(`{"key":"a","data":1,"expiresAt":"9000-12-31T00:00:00Z"}`), []json.RawMessage{said(`{"key":"a","data":1,"expiresAt":"9001-01-01T00:00:00Z"}`), said(`{"key":"a","data":1,"expiresAt":"1969-12-31T00:00:00Z"}`)}},
		"etag":  {(*desk).setSourceState, said(`{"etag":"%s"}`, text(1000)), []json.RawMessage{said(`{"etag":"%s"}`, text(1001)), said(`{}`)}},
		"names": {(*desk).registerSources, sources(plug.MaxSources), []json.RawMessage{sources(plug.MaxSources + 1)}},
		"pages": {(*desk).listTracked, said(`{"limit":1000}`), []json.RawMessage{said(`{"limit":1001}`), said(`{"limit":0}`), said(`{"offset":-1}`)}},
	} {
		if _, refused := c.do(fresh(), c.within); refused != nil {
			t.Errorf("%s: %s", name, refused.Message)
		}
		for i, params := range c.beyond {
			if _, refused := c.do(fresh(), params); refused == nil {
				t.Errorf("%s: %d is taken", name, i)
			}
		}
	}
	d := fresh()
	for n := range plug.MaxCandidates + 1 {
		if _, refused := d.record(said(`{"candidate":{"externalReleaseId":"%d"}}`, n)); (refused != nil) != (n == plug.MaxCandidates) {
			t.Fatalf("release %d: %+v", n, refused)
		}
	}
	manifest := func(n int) json.RawMessage {
		const around = `{"name":"a","protocolVersion":"1.0","capabilities":{},"x":""}`
		return said(`{"name":"a","protocolVersion":"1.0","capabilities":{},"x":"%s"}`, text(n-len(around)))
	}
	if fault := checkManifest(manifest(maxManifest)); fault != nil {
		t.Error(fault)
	}
	if fault := checkManifest(manifest(maxManifest + 1)); fault == nil {
		t.Error("a manifest may be endless")
	}
	for seconds, want := range map[string]int{"7.9": 7, "-5": 0, "1e9": 3600, `"soon"`: 0} {
		if _, fault := result(message{Error: &rpcError{Code: rateLimited, Data: said(`{"retryAfterSeconds":%s}`, seconds)}}); fault.Code != plug.Limited || fault.RetryAfter != want {
			t.Errorf("%s: %+v", seconds, fault)
		}
	}
}
