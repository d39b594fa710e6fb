package host

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/platform/plug"
)

// Characters that are escaped on the way count as they are sent: what was taken can always be sent.
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
