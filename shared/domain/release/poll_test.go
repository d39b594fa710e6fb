package release_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longbox/longbox/shared/domain/release"
	"github.com/longbox/longbox/shared/platform/plug"
)

// begin begins a poll of the source, and returns it with the data for the plugin.
func (r *rig) begin() (*release.Poll, *plug.Releases) {
	r.t.Helper()
	p, err := release.Begin(r.In(r.One), r.DB.App, r.source)
	if err != nil {
		r.t.Fatal(err)
	}
	known, err := p.Known(r.In(r.One), r.DB.App)
	if err != nil {
		r.t.Fatal(err)
	}
	return p, known.Releases
}

// end records the result of a poll.
func (r *rig) end(p *release.Poll, in *release.Result) *release.Outcome {
	r.t.Helper()
	out, err := p.Record(r.In(r.One), r.DB.App, r.publish, in)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// A plugin that sends all that its source has ever announced still gets new releases in.
func TestReleasesOfLongAgoAreKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.DB.Exec(t, "insert into series_tracking (tenant_id, series_id, tracked) values ($1, $2, true)", r.One, r.series)
	r.DB.Exec(t, `insert into release (tenant_id, id, source_id, series_id, external_release_id, payload_url, confidence, state, observed_at, created_at)
		select $1, gen_random_uuid(), $2, $3, n || repeat('ü<', 200), 'https://example.org', 1, 'announced', now(), now() - n * interval '1 minute'
		from generate_series(1, 20000) n`, r.One, r.source, r.series)
	name := func(n int) string { return fmt.Sprint(n, strings.Repeat("ü<", 200)) }
	p, known := r.begin()
	oldest := r.value("select id from release order by created_at limit 1")
	if got := known.Recorded[plug.Key(name(20_000))]; got != oldest {
		t.Errorf("the oldest of %d releases is %q, want %s", len(known.Recorded), got, oldest)
	}
	if data, err := json.Marshal(known); err != nil || len(data) > 5<<18 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	var all []json.RawMessage
	for n := range 1100 {
		all = append(all, r.candidate(name(18_900+n), nil))
	}
	if out := r.end(p, &release.Result{Candidates: append(all, r.candidate("new", nil))}); *out != (release.Outcome{Candidates: 1101, Announced: 1, Known: 1100}) {
		t.Errorf("%+v", out)
	}
}
