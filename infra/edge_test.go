package infra_test

import (
	"strings"
	"testing"
)

// Every distribution has the firewall, and only origins that others cannot reach.
func TestDistributionsAreGuarded(t *testing.T) {
	t.Parallel()
	n := 0
	for _, file := range []string{"infra/edge.yaml", "infra/cdn.yaml"} {
		for name, d := range read(t, file).resources("AWS::CloudFront::Distribution") {
			n++
			config := d.get("DistributionConfig")
			if got := strings.Join(config.get("WebACLId").scalars(), " "); !strings.Contains(got, "WebAclArn") {
				t.Errorf("%s of %s has no firewall: WebACLId is %q", name, file, got)
			}
			for _, o := range config.get("Origins").list() {
				o = o.chosen(true)
				if o.get("OriginAccessControlId").Node == nil && o.get("VpcOriginConfig").Node == nil && o.get("OriginCustomHeaders").Node == nil {
					t.Errorf("%s of %s: anybody may ask the origin %s", name, file, o.get("Id").text())
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d distributions found, want 2", n)
	}
	for rule := range strings.SplitSeq(strings.Join(read(t, "infra/waf.yaml").resources("AWS::WAFv2::WebACL")["WebAcl"].get("Rules").scalars(), " "), "Name ") {
		if strings.Contains(rule, "UriPath") && !(strings.Contains(rule, "URL_DECODE") && strings.Contains(rule, "NORMALIZE_PATH")) {
			t.Errorf("a path that is written differently leads around the rule %.20s", rule)
		}
	}
}
